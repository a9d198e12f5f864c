//! The cluster on which data is left behind and resumed.

use flotilla_tests::{CommandWorker, Flo, Scratch, TIMEOUT, wait_until};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

/// A cluster, and a folder for data that belongs to no node.
pub(crate) struct Site<'a> {
    /// Calls to any node.
    pub(crate) flo: Flo,
    /// The folder.
    pub(crate) scratch: &'a Scratch,
}

/// Lets programs end when it is dropped, whatever happens to the workers that run them.
pub(super) struct Gate {
    file: PathBuf,
}

impl Site<'_> {
    /// Stores a definition.
    pub(super) fn define(&self, definition: &str) {
        let create = ["workflow", "create", "-f", "-"];
        let answer = self.flo.run_with_input(&create, definition.as_bytes());
        drop(answer.success());
    }

    /// Starts a run, or finds the one that was started with this key.
    pub(super) fn start(&self, workflow: &str, input: &Value, key: &str) -> String {
        let input = input.to_string();
        let start = ["workflow", "start", workflow, &input];
        self.flo
            .text(&[&start[..], &["--idempotency-key", key]].concat())
    }

    /// Signals a run.
    pub(super) fn signal(&self, run_id: &str, signal: &str, id: &str, payload: &Value) {
        let payload = payload.to_string();
        let signal = ["workflow", "signal", run_id, "--type", signal, &payload];
        drop(self.flo.text(&[&signal[..], &["--id", id]].concat()));
    }

    /// The current state of a run.
    pub(super) fn run(&self, run_id: &str) -> Value {
        self.flo.json(&["workflow", "status", run_id])
    }

    /// Waits until a run has ended with this status, and returns it.
    pub(super) fn await_end(&self, run_id: &str, status: &str) -> Value {
        wait_until("a run's end", TIMEOUT, || {
            let run = self.run(run_id);
            match run["status"] == status {
                true => Ok(run),
                false => Err(format!("it is {run}")),
            }
        })
    }

    /// The current state of an action run.
    pub(super) fn action_run(&self, id: &str) -> Value {
        self.flo.json(&["action", "status", id])
    }

    /// Waits until an action run has completed.
    pub(super) fn await_action_run(&self, id: &str) {
        wait_until("an action run's end", TIMEOUT, || {
            let run = self.action_run(id);
            match run["status"] == "completed" {
                true => Ok(()),
                false => Err(format!("it is {run}")),
            }
        });
    }

    /// The numbers and types of a run's events.
    pub(super) fn events(&self, run_id: &str) -> Vec<(u64, String)> {
        let lines = self.flo.json_lines(&["workflow", "history", run_id]);
        let told = lines.iter().map(|event| {
            let event_type = event["type"].as_str().unwrap_or_default();
            (
                event["seq"].as_u64().unwrap_or_default(),
                event_type.to_owned(),
            )
        });
        told.collect()
    }

    /// How many events of a type a run has.
    pub(super) fn count_events(&self, run_id: &str, event_type: &str) -> usize {
        let events = self.events(run_id);
        let found = events.iter().filter(|(_, found)| found == event_type);
        found.count()
    }

    /// Starts a worker.
    pub(super) fn work(&self, id: &str, actions: &[(&str, &str)]) -> CommandWorker {
        CommandWorker::start(&self.flo, self.scratch, id, actions)
    }

    /// Keeps programs running for now.
    pub(super) fn shut(&self, name: &str) -> Gate {
        let file = self.scratch.path(&format!("gate-{name}"));
        fs::write(&file, "").expect("a file in the run's own folder");
        Gate { file }
    }
}

impl Gate {
    /// A program for `sh -c` that runs until the gate is dropped.
    pub(super) fn program(&self) -> String {
        format!("while [ -e {} ]; do sleep 0.1; done", self.file.display())
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // If it is gone already, its folder is gone too.
        let _ = fs::remove_file(&self.file);
    }
}
