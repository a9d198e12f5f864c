//! The data of the previous release, served by this build.

use crate::nemesis::{Needs, Nemesis};
use crate::release::{Site, versions};
use crate::stage::Stage;
use std::time::Duration;

/// Serves the data of the previous release. Two of its three members already run this build while clients work; then
/// the third does, too, so that all switch to this build's engine version.
pub(super) struct Upgrade;

impl Nemesis for Upgrade {
    fn name(&self) -> &'static str {
        "upgrade"
    }

    fn needs(&self) -> Needs {
        Needs {
            has_release_data: true,
            ..Needs::default()
        }
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        let before = versions::await_answer(&stage.cluster.endpoints());
        stage.complete();
        let after = versions::await_settled(&stage.cluster.endpoints());
        let release = stage.release.as_ref();
        let release = release.expect("the stage has what the drill needs");
        let (old, new) = (release.engine_version(), after.agreed);
        assert_eq!(
            before.agreed, old,
            "a member was away, and all apply by {before:?}"
        );
        let site = Site {
            flo: stage.cluster.flo(),
            scratch: stage.cluster.scratch(),
        };
        let resumed = release.resume(&site);
        format!(
            "data of {} with engine version {old} served by {} with {new}; resumed: {resumed}",
            release.version(),
            after.binary
        )
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}
