//! Why a replica cannot continue: its process must end.

use crate::start_error::StartError;
use crate::state::rows::Divergence;
use std::time::Duration;

/// Why a replica cannot continue: its process must end, with a non-zero status.
#[derive(Debug, thiserror::Error)]
pub enum FatalError {
    /// openraft ended: a store failed, an entry could not be applied, or it has a bug.
    #[error("consensus ended: {0}")]
    Consensus(String),
    /// The state differs from the majority's (design rule 11).
    #[error(
        "after entry {} this replica's state has digest {:032x}, but the majority's has {:032x}",
        .0.index, .0.ours, .0.majority
    )]
    Diverged(Divergence),
    /// A write to the log does not return.
    #[error("a write to the log has not returned for {} s: the disk hangs", .0.as_secs())]
    LogHangs(Duration),
    /// Found only after the start: this node may not be part of its cluster.
    #[error(transparent)]
    Refused(StartError),
}

impl FatalError {
    /// What to do.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::Consensus(_) => "restart the process; its log replays what is missing".to_owned(),
            Self::Diverged(_) => {
                "restart the process: it receives its state from another member; check the \
                 machine's disk and memory, and keep the logs of all members for a report"
                    .to_owned()
            }
            Self::LogHangs(_) => {
                "check the disk and the machine's kernel log; restart the process once the disk responds"
                    .to_owned()
            }
            Self::Refused(error) => error.hint(),
        }
    }
}
