//! Terminals: how runs end.

use super::Template;
use crate::ids::TerminalName;
use serde::{Deserialize, Serialize};

/// The terminals that every workflow has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BuiltInTerminal {
    /// `flo.Completed`
    Completed,
    /// `flo.Failed`
    Failed,
    /// `flo.Cancelled`
    Cancelled,
    /// `flo.TimedOut`
    TimedOut,
}

impl BuiltInTerminal {
    /// All of them, in the manual's order.
    pub const ALL: [Self; 4] = [
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
    ];

    /// The published name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "flo.Completed",
            Self::Failed => "flo.Failed",
            Self::Cancelled => "flo.Cancelled",
            Self::TimedOut => "flo.TimedOut",
        }
    }

    /// The status that a run ends with there.
    #[must_use]
    pub fn status(self) -> TerminalStatus {
        match self {
            Self::Completed => TerminalStatus::Completed,
            Self::Failed => TerminalStatus::Failed,
            Self::Cancelled => TerminalStatus::Cancelled,
            Self::TimedOut => TerminalStatus::TimedOut,
        }
    }
}

/// A terminal that the definition adds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomTerminal {
    /// Its name, unique in the definition and never `flo.`-prefixed (E107).
    pub name: TerminalName,
    /// The base status (E501).
    pub status: TerminalStatus,
    /// The output of runs that end here; it goes before the workflow's (W4).
    pub output: Option<Template>,
    /// Whether the handler of its status runs (W83).
    pub runs_handler: bool,
    /// Whether a run that ends here undoes what its steps have done; `None`: unless it completes (W83).
    pub compensates: Option<bool>,
}

/// The statuses that a run can end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TerminalStatus {
    /// The run succeeded.
    Completed,
    /// The run failed.
    Failed,
    /// A caller cancelled the run.
    Cancelled,
    /// A wait expired with nowhere to go.
    TimedOut,
}

impl TerminalStatus {
    /// All of them, in the manual's order.
    pub const ALL: [Self; 4] = [
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::TimedOut,
    ];

    /// The published name: `completed`, `failed`, `cancelled`, `timed_out`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
        }
    }
}
