//! The workflows of the manual's pages "Coming from …" are executed with workers that log their calls.

mod node_workflow;
mod pages;
mod temporal;
mod warlock;

use crate::files::example;
use flotilla_tests::{CommandWorker, DevNode, Flo, TIMEOUT, wait_until};
use serde_json::Value;
use std::fs;

/// The log of the calls, in the node's folder.
const LOG: &str = "calls.log";

/// A node with workers that log their calls.
struct Logged {
    node: DevNode,
}

impl Logged {
    /// Starts a node without persistent data.
    fn start() -> Self {
        Self {
            node: DevNode::start(),
        }
    }

    fn flo(&self) -> Flo {
        self.node.flo()
    }

    /// Stores a definition of `examples/coming-from`, with some texts replaced, such as durations.
    #[track_caller]
    fn create(&self, name: &str, changes: &[(&str, &str)]) {
        let file = example(&format!("coming-from/{name}.yaml"));
        let mut text = fs::read_to_string(file).expect("an example");
        for (old, new) in changes {
            assert!(text.contains(old), "{name} has no longer {old}");
            text = text.replace(old, new);
        }
        let file = self.node.scratch().write("changed.yaml", text);
        let created = self.flo().json(&["workflow", "create", "-f", &file]);
        assert_eq!(created["findings"], Value::Array(Vec::new()), "{created}");
    }

    /// Starts a worker for these actions, whose commands for `sh` find their input in `$input` and the
    /// test's folder in `$folder`. The actions themselves are not retried.
    fn work(&self, id: &str, actions: &[(&str, &str)]) -> CommandWorker {
        let folder = self.node.scratch().path("");
        let log = folder.join(LOG);
        let logging = |script: &str| {
            format!(
                "folder={}; input=$(cat); \
                 printf '%s %s %s\\n' \"$FLO_RUN_ID\" \"$FLO_ACTION\" \"$input\" >> {}; {script}",
                folder.display(),
                log.display()
            )
        };
        let scripts: Vec<(&str, String)> = actions
            .iter()
            .map(|(name, script)| (*name, logging(script)))
            .collect();
        let scripts: Vec<(&str, &str)> = scripts
            .iter()
            .map(|(name, script)| (*name, script.as_str()))
            .collect();
        let flags = ["--worker-id", id, "--max-retries", "0"];
        CommandWorker::start_with(&self.flo(), self.node.scratch(), &flags, &scripts)
    }

    /// Starts a run with this id.
    #[track_caller]
    fn begin(&self, workflow: &str, run_id: &str, input: &Value) {
        let input = input.to_string();
        let start = ["workflow", "start", workflow, &input, "--run-id", run_id];
        let _ = self.flo().text(&start);
    }

    /// The run, once it has ended.
    #[track_caller]
    fn ended(&self, run_id: &str) -> Value {
        let _ = self.history(run_id);
        self.flo().json(&["workflow", "status", run_id])
    }

    /// Starts a run, and returns it once it has ended.
    #[track_caller]
    fn run(&self, workflow: &str, run_id: &str, input: &Value) -> Value {
        self.begin(workflow, run_id, input);
        self.ended(run_id)
    }

    /// The run, once one of its active steps has this name and waits for this.
    fn waiting(&self, run_id: &str, step: &str, waiting_for: &str) -> Value {
        wait_until(waiting_for, TIMEOUT, || {
            let run = self.flo().json(&["workflow", "status", run_id]);
            let steps = run["current_steps"].as_array().cloned().unwrap_or_default();
            let is_waiting =
                |active: &Value| active["step"] == step && active["waiting_for"] == waiting_for;
            match steps.iter().any(is_waiting) {
                true => Ok(run),
                false => Err(run.to_string()),
            }
        })
    }

    /// Waits until an action was called for a run.
    fn called(&self, run_id: &str, action: &str) {
        wait_until(action, TIMEOUT, || {
            let calls = self.calls(run_id);
            let is_called = calls.iter().any(|(name, _)| name == action);
            is_called.then_some(()).ok_or(format!("{calls:?}"))
        });
    }

    /// All events of a run, once it has ended.
    #[track_caller]
    fn history(&self, run_id: &str) -> Vec<Value> {
        let follow = ["workflow", "history", run_id, "--follow"];
        self.flo().json_lines(&follow)
    }

    /// The calls of actions for a run so far, with their inputs, in the order in which they began.
    fn calls(&self, run_id: &str) -> Vec<(String, Value)> {
        let log = fs::read_to_string(self.node.scratch().path(LOG)).unwrap_or_default();
        let call = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let id = words.next()?;
            let action = words.next()?.to_owned();
            let input = serde_json::from_str(words.next()?).expect("an input is JSON");
            (id == run_id).then_some((action, input))
        };
        log.lines().filter_map(call).collect()
    }

    /// The actions that were called for a run so far, in the order in which they began.
    fn actions(&self, run_id: &str) -> Vec<String> {
        let calls = self.calls(run_id);
        calls.into_iter().map(|(action, _)| action).collect()
    }

    /// The inputs of the calls of one action for a run so far.
    fn inputs(&self, run_id: &str, action: &str) -> Vec<Value> {
        let calls = self.calls(run_id).into_iter();
        let called = calls.filter(|(name, _)| name == action);
        called.map(|(_, input)| input).collect()
    }
}

/// The outcomes of the steps that a run has left, as `SCOPE/STEP OUTCOME`.
fn outcomes(events: &[Value]) -> Vec<String> {
    let completed = events
        .iter()
        .filter(|event| event["type"] == "step_completed");
    let shown = completed.map(|event| {
        let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
        let place = [text("scope"), text("step")];
        let place: Vec<String> = place.into_iter().filter(|part| !part.is_empty()).collect();
        format!("{} {}", place.join("/"), text("outcome"))
    });
    shown.collect()
}

/// How many events are of this type.
fn count(events: &[Value], kind: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind).count()
}
