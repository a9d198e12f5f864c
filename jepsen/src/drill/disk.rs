//! Disks that fill up, and get free space again.

use crate::nemesis::{LEFT_BYTES, Needs, Nemesis, reserving_nodes};
use crate::stage::Stage;
use flotilla_tests::{TIMEOUT, wait_until};
use std::time::Duration;

/// Fills the disks of all nodes down to their reserve, waits until they accept no new work, and frees them.
pub(super) struct FillAndEmpty;

impl Nemesis for FillAndEmpty {
    fn name(&self) -> &'static str {
        "full-disk"
    }

    fn needs(&self) -> Needs {
        reserving_nodes()
    }

    fn strike(&mut self, stage: &mut Stage) -> String {
        for disk in stage.disks.values() {
            disk.fill_but(LEFT_BYTES);
        }
        let flo = stage.cluster.flo();
        let set = ["--timeout", "1s", "kv", "set", "drill", "1"];
        wait_until("a refusal for lack of space", TIMEOUT, || {
            let answer = flo.run(&set);
            match answer.stderr.contains("nearly full") {
                true => Ok(()),
                false => Err(answer.show()),
            }
        });
        for disk in stage.disks.values() {
            disk.empty();
        }
        wait_until("writes to resume by themselves", TIMEOUT, || {
            let answer = flo.run(&set);
            match answer.code {
                0 => Ok(()),
                _ => Err(answer.show()),
            }
        });
        "three disks down to their reserve: writes refused, then accepted again without a restart"
            .to_owned()
    }

    fn hold(&self) -> Duration {
        Duration::ZERO
    }

    fn heal(&mut self, _stage: &mut Stage) {}
}
