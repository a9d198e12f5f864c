//! Info entries: what callers and tasks say about a run while it is open (W92).

use super::create::{check_open, find};
use crate::ids::{Namespace, RunId};
use crate::json::Json;
use crate::limits::{INFO_BYTES_MAX, INFOS_MAX};
use crate::rejection::{Rejection, check_bytes};
use crate::reply::InfoAdded;
use crate::tables::{EventKind, InfoRecord, InfoTask, Infos};
use crate::turn::{LoadedRun, Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Adds an info entry to an open run, for a caller.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddInfo {
    /// The run.
    pub run_id: RunId,
    /// A JSON object of at most [`INFO_BYTES_MAX`] bytes.
    pub content: Json,
}

impl AddInfo {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<InfoAdded> {
        let mut run = find(turn, namespace, &self.run_id)?;
        let number = add_info(turn, &mut run, None, &self.content)?;
        run.note_run(EventKind::Info { number });
        turn.put_back_run(run);
        Ok(InfoAdded { number })
    }
}

/// Stores an info entry of a run, and returns its number. The event is up to the caller.
///
/// # Errors
/// If the run has ended, has as many entries as it may have, or the content is too large.
pub(crate) fn add_info(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    task: Option<InfoTask>,
    content: &Json,
) -> Result<u32, Rejection> {
    check_open(run)?;
    check_bytes("the info", content.as_str().len(), INFO_BYTES_MAX)?;
    if run.record.infos_count == INFOS_MAX {
        return Err(Rejection::too_many(
            "info entries of a run",
            INFOS_MAX as usize,
        ));
    }
    run.record.infos_count += 1;
    let number = run.record.infos_count;
    let record = InfoRecord {
        at_ms: turn.now_ms(),
        task,
        content: content.clone(),
    };
    turn.put::<Infos>(&(run.number, number), record);
    Ok(number)
}
