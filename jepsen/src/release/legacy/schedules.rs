//! A schedule that fires.

use super::{Legacy, Site, read};
use flotilla_tests::{TIMEOUT, wait_until};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const WORKFLOW: &str = "release-schedule";
const DEFINITION: &str = "kind: Workflow
name: release-schedule
version: \"1.0.0\"
schedule: {interval: 500, max_concurrent: 1000}
start:
  waitForSignal: {type: never, timeoutMs: 10, onTimeout: flo.Completed}
  transitions: {success: flo.Failed}
";
/// How many firings before and after.
const FIRINGS: u64 = 3;

/// A schedule that fires.
pub(super) struct Schedules;

#[derive(Serialize, Deserialize)]
struct Fired {
    fired_count: u64,
}

impl Legacy for Schedules {
    fn name(&self) -> &'static str {
        "schedules"
    }

    fn leave(&self, site: &Site) -> Value {
        site.define(DEFINITION);
        let fired_count = await_firings(site, FIRINGS);
        json!(Fired { fired_count })
    }

    fn resume(&self, site: &Site, acknowledged: &Value) {
        let acknowledged: Fired = read(acknowledged);
        let found = schedule(site);
        assert_eq!(found["state"], "active", "{found}");
        let fired_count = fired_count(&found);
        assert!(fired_count >= acknowledged.fired_count, "{found}");
        let _ = await_firings(site, fired_count + FIRINGS);
        // From here on no further firings come.
        drop(site.flo.text(&["workflow", "disable", WORKFLOW]));
    }
}

fn schedule(site: &Site) -> Value {
    site.flo.json(&["workflow", "schedule", WORKFLOW])
}

fn fired_count(schedule: &Value) -> u64 {
    let count = schedule["fired_count"].as_u64();
    count.expect("a schedule counts its firings")
}

fn await_firings(site: &Site, count: u64) -> u64 {
    wait_until("firings", TIMEOUT, || {
        let found = schedule(site);
        match fired_count(&found) {
            fired if fired >= count => Ok(fired),
            _ => Err(format!("{found}")),
        }
    })
}
