//! The kinds of data that a release leaves behind, one file per kind.
//!
//! The release's own binary writes each kind once, and every later build must resume it. So the format of its part
//! of the manifest is read for as long as that release is kept: fields are added, never changed. Add a kind for
//! every feature of a release that no existing kind shows.

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

/// How long delays and leases last: longer than the rest of a recording, so that they are open at its end.
const DUE_MS: u64 = 20_000;

/// One kind of data that a release leaves behind.
pub(super) trait Legacy {
    /// Its name, in manifests.
    fn name(&self) -> &'static str;

    /// Creates the data, and returns what was acknowledged. Afterwards no process of this kind runs.
    ///
    /// # Panics
    /// When the cluster does not behave as expected.
    fn leave(&self, site: &Site) -> Value;

    /// Finds all of the data, and resumes open work until it ends.
    ///
    /// # Panics
    /// When something is missing, has changed, or does not resume.
    fn resume(&self, site: &Site, acknowledged: &Value);
}

/// Every kind, in the order of creation: what must still be open when the nodes are stopped comes last.
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
