//! What became of a change of the cluster's members.

use crate::failure::Failure;
use crate::output::Output;
use serde::Serialize;

/// What became of a change of one member.
#[derive(Debug, Serialize)]
pub(crate) struct ChangeView {
    node_id: u64,
    changed: bool,
}

impl ChangeView {
    /// Whether the member had to change.
    pub(crate) fn new(node_id: u64, changed: bool) -> Self {
        Self { node_id, changed }
    }

    /// Prints it: `is` says what the node is now, as in `is a learner`.
    pub(crate) fn print(&self, output: Output, is: &str) -> Result<(), Failure> {
        output.value(self, |view| {
            let already = if view.changed { "now" } else { "already" };
            format!("node {} is {already} {is}", view.node_id)
        })
    }
}
