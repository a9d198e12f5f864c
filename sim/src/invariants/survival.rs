//! No process dies of anything but the faults that are injected.
//!
//! A replica that cannot go on says why: openraft has panicked (its issue 2116 is one way), an entry
//! could not be applied, its state differs from the others', or a data directory is not what it was.

use crate::record::Events;

pub(super) fn check(events: &Events) -> Vec<String> {
    events.failures.clone()
}
