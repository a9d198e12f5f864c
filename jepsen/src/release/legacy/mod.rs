//! The kinds of things that a release leaves behind, one file a kind.
//!
//! A kind is left once, by the release's own binary, and taken up by every later build. So what it writes into the
//! manifest is read for as long as that release is kept: a field is added, never changed. For what a release does
//! that no kind here shows, add a kind.

mod dead_letters;
mod keys;
mod runs;
mod schedules;
mod site;
mod streams;
mod tasks;
mod timers;
mod triggers;

pub(crate) use site::Site;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// How long what is put off or leased takes: longer than a recording goes on from then, so that it is open in the end.
const DUE_MS: u64 = 20_000;

/// One kind of thing that a release leaves behind.
pub(super) trait Legacy {
    /// Its name, in manifests.
    fn name(&self) -> &'static str;

    /// Makes some, and returns what was acknowledged of it. Nothing of its own runs afterwards.
    ///
    /// # Panics
    /// When the cluster does not do as it should.
    fn leave(&self, site: &Site) -> Value;

    /// Finds all of it, and has what is open go on to its end.
    ///
    /// # Panics
    /// When something is missing, is not what it was, or does not go on.
    fn take_up(&self, site: &Site, acknowledged: &Value);
}

/// Every kind, in the order in which they are left: what must still be open when the nodes are stopped comes last.
pub(super) fn all() -> Vec<Box<dyn Legacy>> {
    vec![
        Box::new(keys::Keys),
        Box::new(runs::Runs),
        Box::new(schedules::Schedules),
        Box::new(triggers::Triggers),
        Box::new(dead_letters::DeadLetters),
        Box::new(streams::Streams),
        Box::new(tasks::Tasks),
        Box::new(timers::Timers),
    ]
}

/// The kind of this name.
pub(super) fn named(name: &str) -> Option<Box<dyn Legacy>> {
    all().into_iter().find(|legacy| legacy.name() == name)
}

/// What a kind has written into a manifest.
fn read<T: DeserializeOwned>(acknowledged: &Value) -> T {
    serde_json::from_value(acknowledged.clone()).unwrap_or_else(|error| {
        panic!("expected what was acknowledged, but {error}: {acknowledged}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn manifests_tell_all_kinds_apart() {
        let names: BTreeSet<&str> = all().iter().map(|legacy| legacy.name()).collect();
        assert_eq!(names.len(), all().len());
        assert!(names.iter().all(|name| named(name).is_some()));
    }
}
