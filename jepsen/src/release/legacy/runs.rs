//! A definition, and runs of it that have ended or wait for a signal.

use super::{Legacy, Site, read};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const WORKFLOW: &str = "release-run";
/// Ended runs are kept for a hundred years: they must exist whenever a later build looks for them.
const DEFINITION: &str = "kind: Workflow
name: release-run
version: \"1.0.0\"
retention_ms: 316224000000
searchAttributes: [{name: customer, type: string, from: input.customer}]
output: $.steps.start.output
start:
  waitForSignal: {type: go}
  transitions: {success: confirmed}
steps:
  confirmed:
    waitForSignal: {type: confirm}
    transitions: {success: flo.Completed}
";
const RUNS: u64 = 3;

/// A definition, and runs of it.
pub(super) struct Runs;

#[derive(Serialize, Deserialize)]
struct Acknowledged {
    definition: String,
    ended: Vec<Ended>,
    cancelled: Vec<String>,
    open: Vec<Open>,
}

#[derive(Serialize, Deserialize)]
struct Ended {
    run_id: String,
    key: String,
    output: Value,
    events: Vec<(u64, String)>,
}

/// A run that has received its second signal, which is kept for it, and waits for the first.
#[derive(Serialize, Deserialize)]
struct Open {
    run_id: String,
    key: String,
    kept_signal_id: String,
}

impl Legacy for Runs {
    fn name(&self) -> &'static str {
        "runs"
    }

    fn leave(&self, site: &Site) -> Value {
        site.define(DEFINITION);
        let ended = (0..RUNS).map(|number| leave_ended(site, &format!("ended-{number}")));
        let ended: Vec<Ended> = ended.collect();
        let open = (0..RUNS).map(|number| leave_open(site, &format!("open-{number}")));
        let open: Vec<Open> = open.collect();
        json!(Acknowledged {
            definition: definition(site),
            ended,
            cancelled: vec![leave_cancelled(site)],
            open,
        })
    }

    fn resume(&self, site: &Site, acknowledged: &Value) {
        let acknowledged: Acknowledged = read(acknowledged);
        assert_eq!(definition(site), acknowledged.definition);
        for ended in &acknowledged.ended {
            find_ended(site, ended);
        }
        for run_id in &acknowledged.cancelled {
            let run = site.run(run_id);
            assert_eq!(run["status"], "cancelled", "{run}");
        }
        for open in &acknowledged.open {
            go_on(site, open);
        }
    }
}

fn definition(site: &Site) -> String {
    site.flo.text(&["workflow", "show", WORKFLOW])
}

/// A start with the same key and input finds the original run.
fn start(site: &Site, key: &str) -> String {
    site.start(WORKFLOW, &json!({"customer": key}), key)
}

fn leave_ended(site: &Site, key: &str) -> Ended {
    let run_id = start(site, key);
    let output = json!({"by": key});
    site.signal(&run_id, "go", "go", &output);
    site.signal(&run_id, "confirm", "confirm", &json!({}));
    let run = site.await_end(&run_id, "completed");
    assert_eq!(run["output"], output, "{run}");
    Ended {
        events: site.events(&run_id),
        run_id,
        key: key.to_owned(),
        output,
    }
}

fn find_ended(site: &Site, ended: &Ended) {
    let run = site.run(&ended.run_id);
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["output"], ended.output, "{run}");
    assert_eq!(run["search_attributes"]["customer"], ended.key.as_str());
    assert_eq!(site.events(&ended.run_id), ended.events);
    assert_eq!(start(site, &ended.key), ended.run_id, "a key makes one run");
}

fn leave_cancelled(site: &Site) -> String {
    let run_id = start(site, "cancelled");
    let cancel = ["workflow", "cancel", &run_id, "--reason", "a release"];
    drop(site.flo.text(&cancel));
    drop(site.await_end(&run_id, "cancelled"));
    run_id
}

fn leave_open(site: &Site, key: &str) -> Open {
    let run_id = start(site, key);
    let kept_signal_id = format!("{key}-confirm");
    site.signal(&run_id, "confirm", &kept_signal_id, &json!({}));
    Open {
        run_id,
        key: key.to_owned(),
        kept_signal_id,
    }
}

fn go_on(site: &Site, open: &Open) {
    let run_id = start(site, &open.key);
    assert_eq!(run_id, open.run_id, "a key makes one run");
    let run = site.run(&run_id);
    assert_eq!(run["status"], "waiting", "{run}");
    // It is a duplicate: it has no effect.
    site.signal(&run_id, "confirm", &open.kept_signal_id, &json!({}));
    let output = json!({"after": "the upgrade"});
    site.signal(&run_id, "go", "go", &output);
    let run = site.await_end(&run_id, "completed");
    assert_eq!(run["output"], output, "{run}");
    assert_eq!(site.count_events(&run_id, "signal_received"), 2, "{run}");
}
