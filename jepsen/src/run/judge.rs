//! Violations that do not depend on what a workload does.

use crate::checker::Violation;
use crate::history::{History, Outcome};
use crate::stage::Stage;

/// What Rust prints when a thread panics.
const PANICKED: &str = "panicked at";

/// A violation for each panic in a node's log.
pub(crate) fn panics(stage: &Stage) -> Vec<Violation> {
    let mut violations = Vec::new();
    for node in stage.cluster.nodes() {
        let output = node.output();
        let mut lines = output.lines();
        while let Some(line) = lines.find(|line| line.contains(PANICKED)) {
            let said = lines.next().unwrap_or_default();
            let text = format!("node {} panicked: {line} {said}", node.id());
            violations.push(Violation::new(text));
        }
    }
    violations
}

/// A violation if no operation of a workload succeeded: its check then had nothing to judge.
pub(crate) fn nothing_done(history: &History, workload: &str) -> Option<Violation> {
    let mut operations = history.of(workload);
    let done = operations.any(|operation| operation.outcome == Outcome::Ok);
    (!done).then(|| Violation::new("no operation succeeded"))
}
