//! The output of `enable` and `disable` for workflows and actions.

use crate::failure::Failure;
use crate::output::Output;
use serde::Serialize;

/// Whether a name is enabled.
#[derive(Debug, Serialize)]
pub(crate) struct SwitchedView {
    name: String,
    enabled: bool,
}

impl SwitchedView {
    /// The new state of a name.
    pub(crate) fn new(name: String, enabled: bool) -> Self {
        Self { name, enabled }
    }

    /// Prints the state.
    pub(crate) fn print(&self, output: Output) -> Result<(), Failure> {
        output.value(self, |view| {
            let state = if view.enabled { "enabled" } else { "disabled" };
            format!("{} {state}", view.name)
        })
    }
}
