//! Runs that wait for their timers.

use super::{DUE_MS, Legacy, Site, read};
use serde_json::{Value, json};

const WORKFLOW: &str = "release-timer";
const RUNS: u64 = 3;

/// Runs that wait for their timers; their ids were acknowledged.
pub(super) struct Timers;

impl Legacy for Timers {
    fn name(&self) -> &'static str {
        "timers"
    }

    fn leave(&self, site: &Site) -> Value {
        site.define(&definition());
        let start = |number| site.start(WORKFLOW, &json!({}), &format!("timer-{number}"));
        let run_ids: Vec<String> = (0..RUNS).map(start).collect();
        for run_id in &run_ids {
            let run = site.run(run_id);
            assert_eq!(run["status"], "waiting", "{run}");
        }
        json!(run_ids)
    }

    fn resume(&self, site: &Site, acknowledged: &Value) {
        for run_id in read::<Vec<String>>(acknowledged) {
            let run = site.await_end(&run_id, "completed");
            assert_eq!(site.count_events(&run_id, "signal_timeout"), 1, "{run}");
        }
    }
}

fn definition() -> String {
    format!(
        "kind: Workflow
name: {WORKFLOW}
version: \"1.0.0\"
retention_ms: 316224000000
start:
  waitForSignal: {{type: never, timeoutMs: {DUE_MS}, onTimeout: flo.Completed}}
  transitions: {{success: flo.Failed}}
"
    )
}
