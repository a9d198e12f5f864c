//! The result of a membership change.

use crate::failure::Failure;
use crate::output::Output;
use serde::Serialize;

/// The result of a change to one member.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeView {
    node_id: u64,
    changed: bool,
}

impl ChangeView {
    /// The result; `changed` says whether the member had to change.
    pub(crate) fn new(node_id: u64, changed: bool) -> Self {
        Self { node_id, changed }
    }

    /// Prints the result; `is` describes the node's new state, such as `a learner`.
    pub(crate) fn print(&self, output: Output, is: &str) -> Result<(), Failure> {
        output.value(self, |view| {
            let already = if view.changed { "now" } else { "already" };
            format!("node {} is {already} {is}", view.node_id)
        })
    }
}
