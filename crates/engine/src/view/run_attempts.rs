//! The attempts at a run that is retried as a whole (W77).

use crate::ids::{RunId, RunNumber};
use crate::store::{Reader, StoreError};
use crate::tables::{RunRecord, Runs, read};

/// The place of a run among the attempts at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunAttempts {
    /// Which attempt it is, from 1.
    pub attempt: u32,
    /// The one before it, if it is kept.
    pub previous: Option<RunId>,
    /// The one after it, once it has begun.
    pub next: Option<RunId>,
    /// The last one so far, if there are several.
    pub latest: Option<RunId>,
}

/// The last attempt at a run that is retried, if it is kept (W77).
pub(super) fn latest_attempt(
    reader: &dyn Reader,
    run: &RunRecord,
) -> Result<Option<(RunNumber, RunRecord)>, StoreError> {
    let Some(chain) = run.chain else {
        return Ok(None);
    };
    let first = read::<Runs>(reader, &chain.first)?.and_then(|first| first.chain);
    let Some(first) = first else {
        return Ok(None);
    };
    Ok(read::<Runs>(reader, &first.latest)?.map(|latest| (first.latest, latest)))
}

/// The place of a run among its attempts.
pub(super) fn attempts(reader: &dyn Reader, run: &RunRecord) -> Result<RunAttempts, StoreError> {
    let Some(chain) = run.chain else {
        return Ok(RunAttempts {
            attempt: 1,
            ..RunAttempts::default()
        });
    };
    let previous = match chain.previous {
        Some(previous) => read::<Runs>(reader, &previous)?.map(|run| run.id),
        None => None,
    };
    Ok(RunAttempts {
        attempt: chain.attempt,
        previous,
        next: chain.next.map(RunId::generated),
        latest: latest_attempt(reader, run)?.map(|(_, latest)| latest.id),
    })
}
