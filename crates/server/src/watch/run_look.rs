//! What one read of a run shows those who watch it.

use crate::limits::WATCH_EVENTS_MAX;
use flotilla_engine::ids::{Namespace, RunId};
use flotilla_engine::store::{Reader, StoreError};
use flotilla_engine::view::{self, EventView, HistoryRange, RunEnding, RunSummary};
use std::cmp::Ordering;

/// The next events of a run, and the run after the last one.
pub(crate) struct RunLook {
    /// Oldest first.
    pub(crate) events: Vec<EventView>,
    /// `None` if there are more events.
    pub(crate) run: Option<RunSummary>,
    /// How the last attempt at a run that is not open has ended (W77); `None` for an open one.
    pub(crate) ending: Option<RunEnding>,
}

/// The run, and the event behind which a look begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LookRange {
    pub(crate) namespace: Namespace,
    pub(crate) run_id: RunId,
    pub(crate) after_seq: u64,
}

impl PartialOrd for LookRange {
    /// Ranges of different runs have no order.
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let is_same_run = self.namespace == other.namespace && self.run_id == other.run_id;
        is_same_run.then(|| self.after_seq.cmp(&other.after_seq))
    }
}

impl RunLook {
    /// Reads events and status together, so that the status cannot overtake its events; `None` if there is no such run.
    pub(crate) fn read(reader: &dyn Reader, range: &LookRange) -> Result<Option<Self>, StoreError> {
        let LookRange {
            namespace,
            run_id,
            after_seq,
        } = range;
        let events = HistoryRange {
            after_seq: *after_seq,
            limit: WATCH_EVENTS_MAX,
        };
        let Some(page) = view::history(reader, namespace, run_id, events)? else {
            return Ok(None);
        };
        let run = match page.has_more {
            true => None,
            false => view::run_summary(reader, namespace, run_id)?,
        };
        let ending = match &run {
            Some(run) if !run.status.is_open() => view::run_end(reader, namespace, run_id)?,
            Some(_) | None => None,
        };
        Ok(Some(Self {
            events: page.events,
            run,
            ending,
        }))
    }
}
