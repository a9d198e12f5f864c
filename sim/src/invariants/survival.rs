//! No process dies of anything but the injected faults.
//!
//! A replica that stops gives the reason: openraft has panicked (its issue 2116 is one way), an entry
//! could not be applied, its state differs from the others', or its data directory was damaged.

use crate::record::Events;

pub(super) fn check(events: &Events) -> Vec<String> {
    events.failures.clone()
}
