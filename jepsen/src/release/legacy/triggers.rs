//! A trigger that has started runs, and is paused before further records.

use super::{Legacy, Site, read};
use flotilla_tests::{TIMEOUT, wait_until};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const STREAM: &str = "release-orders";
const WORKFLOW: &str = "release-trigger";
const DEFINITION: &str = "kind: Workflow
name: release-trigger
version: \"1.0.0\"
trigger: {stream: release-orders}
start:
  waitForSignal: {type: never, timeoutMs: 10, onTimeout: flo.Completed}
  transitions: {success: flo.Failed}
";
/// Records that have started runs, and as many that have not.
const RECORDS: u64 = 3;

/// A trigger that has started runs.
pub(super) struct Triggers;

#[derive(Serialize, Deserialize)]
struct Acknowledged {
    run_count: u64,
    lag: u64,
}

impl Legacy for Triggers {
    fn name(&self) -> &'static str {
        "triggers"
    }

    fn leave(&self, site: &Site) -> Value {
        drop(site.flo.text(&["stream", "create", STREAM]));
        site.define(DEFINITION);
        append(site);
        drop(await_trigger(site, RECORDS));
        drop(site.flo.text(&["workflow", "disable", WORKFLOW]));
        append(site);
        json!(Acknowledged {
            run_count: RECORDS,
            lag: RECORDS,
        })
    }

    fn resume(&self, site: &Site, acknowledged: &Value) {
        let Acknowledged { run_count, lag } = read(acknowledged);
        let found = trigger(site);
        assert_eq!(found["state"], "disabled", "{found}");
        assert_eq!(found["run_count"], run_count, "{found}");
        assert_eq!(found["lag"], lag, "{found}");
        drop(site.flo.text(&["workflow", "enable", WORKFLOW]));
        let found = await_trigger(site, run_count + lag);
        assert_eq!(found["lost_count"], 0, "{found}");
    }
}

fn append(site: &Site) {
    for number in 0..RECORDS {
        let payload = json!({"order": number}).to_string();
        drop(site.flo.text(&["stream", "append", STREAM, &payload]));
    }
}

fn trigger(site: &Site) -> Value {
    site.flo.json(&["workflow", "trigger", WORKFLOW])["triggers"][0].take()
}

/// Waits until it has started this many runs and has no lag.
fn await_trigger(site: &Site, run_count: u64) -> Value {
    wait_until("a run for each record", TIMEOUT, || {
        let found = trigger(site);
        match found["run_count"] == run_count && found["lag"] == 0 {
            true => Ok(found),
            false => Err(format!("{found}")),
        }
    })
}
