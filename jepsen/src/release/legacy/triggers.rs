//! A trigger that has started runs, and stands still with records before it.

use super::{Legacy, Site, read};
use flotilla_tests::{PATIENCE, wait_until};
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
    runs_count: u64,
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
            runs_count: RECORDS,
            lag: RECORDS,
        })
    }

    fn take_up(&self, site: &Site, acknowledged: &Value) {
        let Acknowledged { runs_count, lag } = read(acknowledged);
        let found = trigger(site);
        assert_eq!(found["state"], "disabled", "{found}");
        assert_eq!(found["runs_count"], runs_count, "{found}");
        assert_eq!(found["lag"], lag, "{found}");
        drop(site.flo.text(&["workflow", "enable", WORKFLOW]));
        let found = await_trigger(site, runs_count + lag);
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
    site.flo.json(&["workflow", "trigger", WORKFLOW])
}

/// Waits until it has started so many runs, and has nothing before it.
fn await_trigger(site: &Site, runs_count: u64) -> Value {
    wait_until("a run for each record", PATIENCE, || {
        let found = trigger(site);
        match found["runs_count"] == runs_count && found["lag"] == 0 {
            true => Ok(found),
            false => Err(format!("{found}")),
        }
    })
}
