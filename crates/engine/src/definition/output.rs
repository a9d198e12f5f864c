//! What becomes of the output of a step or a run (W4, W67).

use super::{Definition, Target, Template, TerminalStatus};
use serde::{Deserialize, Serialize};

/// What becomes of the output of a step's target, or of a run (W67). Invariant: at least one of the two is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRules {
    /// The output: a mapping, in which `$.result` is the output of the target, or of the step that the run left last.
    pub extract: Option<Template>,
    /// The JSON Schema of the output as compact JSON text, checked outside `apply`.
    pub schema: Option<String>,
}

impl Definition {
    /// What becomes the output of a run that ends at `terminal`, if the definition says so; `None` for the output of the step
    /// that was left last (W4).
    #[must_use]
    pub fn output_at(&self, terminal: Target) -> Option<&Template> {
        self.own_output(terminal)
            .or_else(|| self.output_rules_at(terminal)?.extract.as_ref())
    }

    /// The JSON Schema of the output of a run that ends at `terminal`, if it has to satisfy one (W67).
    #[must_use]
    pub fn output_schema_at(&self, terminal: Target) -> Option<&str> {
        self.output_rules_at(terminal)?.schema.as_deref()
    }

    /// The definition's rules for its output, if they apply at `terminal`.
    fn output_rules_at(&self, terminal: Target) -> Option<&OutputRules> {
        let is_completed = self.status_at(terminal) == Some(TerminalStatus::Completed);
        let applies = is_completed && self.own_output(terminal).is_none();
        self.output.as_ref().filter(|_| applies)
    }

    /// The output that a custom terminal defines.
    fn own_output(&self, terminal: Target) -> Option<&Template> {
        match terminal {
            Target::Custom(index) => self.terminal(index).output.as_ref(),
            Target::BuiltIn(_) | Target::Step(_) | Target::End(_) => None,
        }
    }
}
