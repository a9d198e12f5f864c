//! A node with an open run, which bad input must not harm.

use crate::files::fixture;
use crate::history::{self, Event};
use flotilla_tests::{DevNode, Flo, Scratch};
use serde_json::json;

/// A node whose one run waits for a signal.
#[derive(Debug)]
pub(crate) struct Parked {
    node: DevNode,
    run_id: String,
}

impl Parked {
    /// Starts the node and the run.
    pub(crate) fn start() -> Self {
        let node = DevNode::start();
        let flo = node.flo();
        let _ = flo.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
        let run_id = flo.text(&["workflow", "start", "parked", r#"{"kept":true}"#]);
        Self { node, run_id }
    }

    /// Commands to the node.
    pub(crate) fn flo(&self) -> Flo {
        self.node.flo()
    }

    /// The node.
    pub(crate) fn node(&self) -> &DevNode {
        &self.node
    }

    /// A folder for the test's files.
    pub(crate) fn scratch(&self) -> &Scratch {
        self.node.scratch()
    }

    /// The run that waits for the signal `go`.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Expects the run to exist, as the only one of its workflow, and to complete.
    pub(crate) fn expect_nothing_lost(self) {
        let flo = self.flo();
        let run_id = self.run_id();
        let _ = flo.text(&["workflow", "signal", run_id, "--type", "go", r#"{"n":1}"#]);
        let events = flo.json_lines(&["workflow", "history", run_id, "--follow"]);
        let events: Vec<Event> = events.into_iter().map(Event::from).collect();
        history::expect_sound(run_id, &events);
        let run = flo.json(&["workflow", "status", run_id]);
        assert_eq!(run["status"], "completed", "{run}");
        assert_eq!(run["input"], json!({"kept": true}), "{run}");
        assert_eq!(run["output"], json!({"n": 1}), "{run}");
        let runs = flo.json(&["workflow", "runs", "--workflow", "parked"]);
        let items = runs["items"].as_array().expect("a list has items");
        assert_eq!(items.len(), 1, "{runs}");
    }
}
