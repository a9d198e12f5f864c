//! An action with runs: one done, one held by a worker that is gone, some waiting.

use super::{DUE_MS, Legacy, Site, read};
use flotilla_tests::{TIMEOUT, wait_until};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const ACTION: &str = "release-work";
const WORKFLOW: &str = "release-task";
const DEFINITION: &str = "kind: Workflow
name: release-task
version: \"1.0.0\"
retention_ms: 316224000000
start:
  run: \"@actions/release-work\"
  transitions: {success: flo.Completed, failure: flo.Failed}
";

/// An action, and runs of it.
pub(super) struct Tasks;

#[derive(Serialize, Deserialize)]
struct Acknowledged {
    /// A run whose task is done.
    done: Started,
    /// One whose task is held by a worker.
    leased: Started,
    /// One whose task waits for a worker.
    ready: Started,
    /// A stand-alone action run, which waits for a worker.
    invoked: String,
    /// Another one, which no worker gets for a while.
    delayed: String,
}

#[derive(Serialize, Deserialize)]
struct Started {
    run_id: String,
    input: Value,
}

impl Legacy for Tasks {
    fn name(&self) -> &'static str {
        "tasks"
    }

    fn leave(&self, site: &Site) -> Value {
        let due_ms = DUE_MS.to_string();
        let register = ["action", "register", ACTION, "--timeout-ms", &due_ms];
        let limits = ["--max-retries", "9", "--retry-delay-ms", "100"];
        drop(site.flo.text(&[&register[..], &limits].concat()));
        site.define(DEFINITION);
        let mut worker = site.work("release-worker", &[(ACTION, "cat")]);
        let done = start(site, "done");
        drop(site.await_end(&done.run_id, "completed"));
        assert!(worker.drain().success(), "{}", worker.output());
        let gate = site.shut("leased");
        let mut holder = site.work("release-idler", &[(ACTION, &gate.program())]);
        let leased = start(site, "leased");
        await_lease(site, &leased.run_id);
        holder.kill();
        // No worker is registered: these wait.
        let invoke = ["action", "invoke", ACTION, "{}", "--async"];
        json!(Acknowledged {
            done,
            leased,
            ready: start(site, "ready"),
            invoked: site.flo.text(&invoke),
            delayed: site
                .flo
                .text(&[&invoke[..], &["--delay-ms", &due_ms]].concat()),
        })
    }

    fn resume(&self, site: &Site, acknowledged: &Value) {
        let acknowledged: Acknowledged = read(acknowledged);
        let Acknowledged {
            done,
            leased,
            ready,
            invoked,
            delayed,
        } = acknowledged;
        expect_done(&site.run(&done.run_id), &done);
        for open in [&leased, &ready] {
            let run = site.run(&open.run_id);
            assert_eq!(run["completed_at_ms"], Value::Null, "{run}");
        }
        let _worker = site.work("release-heir", &[(ACTION, "cat")]);
        for open in [&leased, &ready] {
            expect_done(&site.await_end(&open.run_id, "completed"), open);
        }
        let attempts = site.count_events(&leased.run_id, "action_started");
        assert_eq!(
            attempts, 2,
            "its lease expired, and the task was assigned again"
        );
        for id in [&invoked, &delayed] {
            site.await_action_run(id);
        }
    }
}

fn start(site: &Site, name: &str) -> Started {
    let input = json!({"task": name});
    Started {
        run_id: site.start(WORKFLOW, &input, name),
        input,
    }
}

/// The worker returns its input as its output.
fn expect_done(run: &Value, started: &Started) {
    assert_eq!(run["status"], "completed", "{run}");
    assert_eq!(run["output"], started.input, "{run}");
}

fn await_lease(site: &Site, run_id: &str) {
    wait_until("a worker with the task", TIMEOUT, || {
        match site.count_events(run_id, "action_started") {
            0 => Err(site.run(run_id).to_string()),
            _ => Ok(()),
        }
    });
}
