//! What is drawn of a definition.
//!
//! The intermediate form belongs to the engine, which the command line does not depend on (ADR 0001),
//! so its types cannot be named here. They are read as everybody else sees them: as a record, of which
//! serde takes the fields below. The test of the drawing shows when they part.

use crate::code::Code;
use crate::failure::Failure;
use flotilla_dsl::Parsed;
use serde::Deserialize;

/// A workflow.
#[derive(Debug, Deserialize)]
pub(super) struct Form {
    pub(super) name: String,
    pub(super) version: String,
    /// The first one is the start step.
    pub(super) steps: Vec<Step>,
    pub(super) terminals: Vec<Terminal>,
    pub(super) plans: Vec<Plan>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Step {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) transitions: Vec<Transition>,
}

#[derive(Debug, Deserialize)]
pub(super) enum Kind {
    Run {
        target: RunTarget,
    },
    Wait {
        signal_type: String,
        timeout_ms: Option<u64>,
        on_timeout: Option<Target>,
    },
}

#[derive(Debug, Deserialize)]
pub(super) enum RunTarget {
    Action(String),
    /// The position of a plan.
    Plan(usize),
    Workflow {
        name: String,
        version: Option<String>,
    },
}

#[derive(Debug, Deserialize)]
pub(super) struct Transition {
    pub(super) outcome: String,
    pub(super) target: Target,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum Target {
    /// The position of a step.
    Step(usize),
    BuiltIn(BuiltIn),
    /// The position of a custom terminal.
    Custom(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum BuiltIn {
    Completed,
    Failed,
    Cancelled,
    TimedOut,
}

#[derive(Debug, Deserialize)]
pub(super) struct Terminal {
    pub(super) name: String,
    pub(super) status: BuiltIn,
}

#[derive(Debug, Deserialize)]
pub(super) struct Plan {
    pub(super) name: String,
}

impl BuiltIn {
    /// The published name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Completed => "flo.Completed",
            Self::Failed => "flo.Failed",
            Self::Cancelled => "flo.Cancelled",
            Self::TimedOut => "flo.TimedOut",
        }
    }

    /// The status that a run ends with there.
    pub(super) fn status(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }
}

impl Form {
    /// Reads the definition; none, when the text was refused.
    ///
    /// # Errors
    /// When the form of definitions has changed and this has not.
    pub(super) fn of(parsed: &Parsed) -> Result<Option<Self>, Failure> {
        let record = serde_json::to_value(&parsed.definition);
        record.and_then(serde_json::from_value).map_err(|error| {
            let message = format!("expected to know the form of the definition, but {error}");
            Failure::new(Code::DefinitionForm, message)
        })
    }
}
