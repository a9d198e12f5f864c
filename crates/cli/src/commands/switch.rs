//! What `enable` and `disable` print, of workflows and of actions.

use crate::failure::Failure;
use crate::output::Output;
use serde::Serialize;

/// Whether a name is enabled now.
#[derive(Debug, Serialize)]
pub(crate) struct SwitchedView {
    name: String,
    enabled: bool,
}

impl SwitchedView {
    /// What a name is now.
    pub(crate) fn new(name: String, enabled: bool) -> Self {
        Self { name, enabled }
    }

    /// Prints it.
    pub(crate) fn print(&self, output: Output) -> Result<(), Failure> {
        output.value(self, |view| {
            let state = if view.enabled { "enabled" } else { "disabled" };
            format!("{} {state}", view.name)
        })
    }
}
