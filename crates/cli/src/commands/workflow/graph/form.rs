//! The parts of a definition that are drawn.
//!
//! The intermediate form belongs to the engine, on which the command line does not depend (ADR
//! 0001), so its types cannot be named here. This module deserializes the fields that it needs from
//! their serialized form instead. The test of the drawing fails if the two diverge.

use crate::code::Code;
use crate::failure::Failure;
use flotilla_dsl::Parsed;
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A workflow.
#[derive(Debug, Deserialize)]
pub(super) struct Form {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) blocks: Vec<Block>,
    /// The steps; the first one is the start step.
    pub(super) steps: Vec<Step>,
    /// The position of the block step that is the workflow's handler of failures.
    pub(super) on_error: Option<usize>,
    /// The same for cancellation.
    pub(super) on_cancel: Option<usize>,
    /// The outcomes of `flo.End.NAME`.
    pub(super) ends: Vec<String>,
    pub(super) terminals: Vec<Terminal>,
    pub(super) plans: Vec<Plan>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Block {
    pub(super) form: BlockForm,
    /// The position of the first step.
    pub(super) start: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum BlockForm {
    Graph,
    List,
    Single,
}

#[derive(Debug, Deserialize)]
pub(super) struct Step {
    pub(super) name: String,
    /// The position of its block.
    pub(super) block: usize,
    /// The position of the step after it in a list.
    pub(super) next: Option<usize>,
    /// What is called when the step was cancelled.
    pub(super) on_cancel: Option<Call>,
    pub(super) kind: Kind,
    pub(super) transitions: Vec<Transition>,
}

/// The type of the signal that a step waits for.
#[derive(Debug, Deserialize)]
pub(super) enum SignalType {
    Fixed(String),
    Computed(IgnoredAny),
}

#[derive(Debug, Deserialize)]
pub(super) enum Kind {
    Run {
        call: Call,
        fallback: Option<Call>,
        compensation: Option<Compensation>,
        fallback_compensation: Option<Compensation>,
    },
    Wait {
        signal_type: SignalType,
        timeout_ms: Option<u64>,
        on_timeout: Option<Target>,
    },
    Parallel {
        branches: Vec<Branch>,
        join: Join,
    },
    Block {
        body: Branch,
    },
    ForEach {
        body: Branch,
    },
    Switch {
        arms: Vec<Arm>,
        default: Option<Target>,
    },
    Set,
    Emit {
        stream: String,
    },
    Timer(Timer),
    Approval {
        quorum: u16,
        timeout_ms: Option<u64>,
    },
}

/// The time for which a timer step waits.
#[derive(Debug, Deserialize)]
pub(super) enum Timer {
    Duration { ms: u64 },
    Until(IgnoredAny),
}

/// A condition of a switch, and where it leads.
#[derive(Debug, Deserialize)]
pub(super) struct Arm {
    pub(super) when: Expression,
    pub(super) target: Target,
}

#[derive(Debug, Deserialize)]
pub(super) struct Expression {
    pub(super) text: String,
}

/// What decides how a step with branches ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum Join {
    All,
    Any,
    First,
    Count(u16),
}

#[derive(Debug, Deserialize)]
pub(super) struct Branch {
    pub(super) name: String,
    /// The position of the block.
    pub(super) block: usize,
}

/// A call of a run step.
#[derive(Debug, Deserialize)]
pub(super) struct Call {
    pub(super) target: RunTarget,
}

/// How what a call has done is undone.
#[derive(Debug, Deserialize)]
pub(super) struct Compensation {
    pub(super) call: Call,
}

#[derive(Debug, Deserialize)]
pub(super) enum RunTarget {
    Action(String),
    /// The plan's position.
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
    /// The step's position.
    Step(usize),
    BuiltIn(BuiltIn),
    /// The custom terminal's position.
    Custom(usize),
    /// The position of the outcome among the ends.
    End(usize),
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

    /// The status of a run that ends at this terminal.
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
    /// Whether the step at a position is a handler of the workflow: nothing leads to it, and it leads nowhere.
    pub(super) fn is_handler(&self, position: usize) -> bool {
        [self.on_error, self.on_cancel].contains(&Some(position))
    }

    /// Reads the definition; `None` if the text was refused.
    ///
    /// # Errors
    /// If the definition's form has changed and this module has not.
    pub(super) fn of(parsed: &Parsed) -> Result<Option<Self>, Failure> {
        let record = serde_json::to_value(&parsed.definition);
        record.and_then(serde_json::from_value).map_err(|error| {
            let message = format!("expected a known definition form, but {error}");
            Failure::new(Code::DefinitionUnreadable, message)
        })
    }
}
