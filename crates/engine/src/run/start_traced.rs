//! Starting a run in a trace.

use super::start::StartRun;
use crate::ids::Namespace;
use crate::reply::Reply;
use crate::trace::TraceContext;
use crate::turn::{Outcome, Turn};
use serde::{Deserialize, Serialize};

/// Starts a run of a workflow, which remembers the trace that its caller is in: whoever leads can put the
/// run's steps there. A start that finds its run started leaves that one in the trace of the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartTracedRun {
    /// What is started.
    pub start: StartRun,
    /// Where in which trace the caller is.
    pub trace: TraceContext,
}

impl StartTracedRun {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, namespace: &Namespace) -> Outcome<Reply> {
        self.start.apply_in(turn, namespace, Some(self.trace))
    }
}
