//! The data of the release before, served by this build.

use crate::nemesis::{Needs, Nemesis};
use crate::release::{Site, versions};
use crate::stage::Stage;
use std::time::Duration;

/// Serves what the release before left behind: two of its three members run this build already, and clients work; now
/// the third does, too, so that all go over to this build's engine version.
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
            "a member was away, and all decide by {before:?}"
        );
        let site = Site {
            flo: stage.cluster.flo(),
            scratch: stage.cluster.scratch(),
        };
        let taken_up = release.take_up(&site);
        format!(
            "data of {} with engine version {old} served by {} with {new}; taken up: {taken_up}",
            release.version(),
            after.binary
        )
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}
