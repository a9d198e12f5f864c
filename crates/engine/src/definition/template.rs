//! Input mappings and paths, parsed once when the definition is created (W15).

use super::{Expression, StepIndex, Variable};
use serde::{Deserialize, Serialize};

/// A mapping: JSON text with placeholders that paths fill when it is rendered.
///
/// The literal parts together with a JSON value in each hole are one valid JSON text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Template {
    /// The pieces in order.
    pub parts: Vec<Part>,
}

impl Template {
    /// The paths in it, in order.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) | Part::Expression(_) => None,
            Part::Path(path) => Some(path),
        })
    }

    /// The expressions in it, in order.
    pub fn expressions(&self) -> impl Iterator<Item = &Expression> {
        self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) | Part::Path(_) => None,
            Part::Expression(expression) => Some(expression),
        })
    }

    /// Whether one of its paths or expressions leads into `root`.
    pub(crate) fn reads(&self, root: Root) -> bool {
        let variables = self
            .expressions()
            .flat_map(|expression| &expression.variables);
        let mut variables = variables.filter(|variable| **variable == Variable::Root(root));
        self.paths().any(|path| path.root == root) || variables.next().is_some()
    }
}

/// A piece of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Part {
    /// JSON text, copied as it is.
    Literal(String),
    /// A hole; an unresolved path gives `null`.
    Path(Path),
    /// A hole for the value of an expression (W64).
    Expression(Expression),
}

/// A reference such as `$.steps.charge.output.items[0].price`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Where it starts.
    pub root: Root,
    /// The way down from there; empty for outcomes and what `$.flo` says.
    pub segments: Vec<Segment>,
}

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Root {
    /// `$.input`
    Input,
    /// `$.steps.NAME.output`
    StepOutput(StepIndex),
    /// `$.steps.NAME.outcome`
    StepOutcome(StepIndex),
    /// `$.flo.run_id`
    RunId,
    /// `$.state`
    State,
    /// `$.meta`: the metadata that the run was started with (W91).
    Meta,
    /// `$.item`: the item of the enclosing iteration of this step (W57).
    Item(StepIndex),
    /// `$.index`: its index, from 0.
    ItemIndex(StepIndex),
    /// `$.result`: the output of the attempt that has ended, in `set` (W63).
    Result,
    /// `$.error`: the error of the attempt that has failed (W71).
    Error,
    /// `$.error` in `onError`, `$.cancel` in `onCancel`: why the run ends (W80, W81).
    EndCause,
    /// `$.flo.timestamp`: the log entry's time in milliseconds.
    Timestamp,
    /// `$.flo.NAME`: something else about the run (W15).
    Run(RunFact),
}

/// What `$.flo` says about a run, beside its id and the time (W15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunFact {
    /// The name of its workflow.
    Workflow,
    /// The version to which it is pinned.
    Version,
    /// The revision to which it is pinned, a number.
    Revision,
    /// When it was started, in milliseconds.
    StartedAt,
    /// The id of its parent, or null.
    ParentRunId,
    /// What started it: `api`, `child`, `schedule` or `trigger`.
    TriggeredBy,
    /// Which attempt at the run it is, from 1 (W77).
    RunAttempt,
}

impl RunFact {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Workflow,
        Self::Version,
        Self::Revision,
        Self::StartedAt,
        Self::ParentRunId,
        Self::TriggeredBy,
        Self::RunAttempt,
    ];

    /// What a definition calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Version => "version",
            Self::Revision => "revision",
            Self::StartedAt => "started_at",
            Self::ParentRunId => "parent_run_id",
            Self::TriggeredBy => "triggered_by",
            Self::RunAttempt => "run_attempt",
        }
    }
}

/// One step down into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Segment {
    /// `.field`
    Field(String),
    /// `[index]`
    Index(u32),
}
