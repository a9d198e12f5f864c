//! The step results and the state that a run takes over when it retries another run from a step (W90).

use super::history_replay::{ReplayLimitExceeded, ReplayedResult, ReplayedRun};
use super::mapped_results::MappedResults;
use super::state;
use crate::definition::StepIndex;
use crate::ids::ScopeNumber;
use crate::json::Json;
use crate::limits::TAKEN_OVER_BYTES_MAX;
use crate::store::StoreError;
use crate::tables::{Cursor, PayloadRef, RunCursor, StateRecord, States, StepResult, StepResults};
use crate::turn::{Abort, LoadedRun, Turn, TurnResult};
use std::collections::{BTreeMap, BTreeSet};

/// Results and a state that a new run takes over, and the step with which it begins.
pub(crate) struct TakenOver {
    step: StepIndex,
    /// The visit with which it begins, from 1.
    visit: u32,
    /// Their outputs are payloads of the other run.
    mapped: MappedResults,
    /// The texts of these outputs.
    outputs: BTreeMap<PayloadRef, Json>,
    state: Option<Json>,
}

/// Why the payloads were not read.
enum PayloadReadError {
    TooLarge,
    Store(StoreError),
}

impl From<ReplayLimitExceeded> for PayloadReadError {
    fn from(_: ReplayLimitExceeded) -> Self {
        Self::TooLarge
    }
}

/// The outputs of results, each of them once.
fn outputs_of(
    mapped: &MappedResults,
    mut payload: impl FnMut(PayloadRef) -> Result<Json, PayloadReadError>,
) -> Result<BTreeMap<PayloadRef, Json>, PayloadReadError> {
    let outputs = mapped.results.iter().filter_map(|one| one.result.output);
    let distinct: BTreeSet<PayloadRef> = outputs.collect();
    let read = distinct
        .into_iter()
        .map(|output| Ok((output, payload(output)?)));
    read.collect()
}

impl TakenOver {
    /// Reads the payloads that a new run takes over if it begins at `step`; `None` if they are too large.
    pub(super) fn read(
        turn: &mut Turn<'_, '_>,
        step: StepIndex,
        replay: &ReplayedRun,
        mapped: MappedResults,
    ) -> TurnResult<Option<Self>> {
        let mut bytes = 0;
        let mut payload = |reference: PayloadRef| {
            let text = turn.payload(reference).map_err(PayloadReadError::Store)?;
            bytes += text.as_str().len();
            match bytes > TAKEN_OVER_BYTES_MAX {
                true => Err(PayloadReadError::TooLarge),
                false => Ok(text),
            }
        };
        let state = replay.state(&mut payload);
        let read = state.and_then(|state| Ok((state, outputs_of(&mapped, &mut payload)?)));
        match read {
            Ok((state, outputs)) => Ok(Some(Self {
                step,
                visit: replay.visit,
                mapped,
                outputs,
                state,
            })),
            Err(PayloadReadError::TooLarge) => Ok(None),
            Err(PayloadReadError::Store(error)) => Err(Abort::Store(error)),
        }
    }

    /// Writes it to a run that is being created.
    pub(super) fn write(
        self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
    ) -> Result<(), StoreError> {
        let mut stored = BTreeMap::new();
        for (former, text) in self.outputs {
            stored.insert(former, run.store_payload(turn, text));
        }
        if let Some(object) = self.state {
            let key = (run.number, ScopeNumber::ROOT);
            turn.put::<States>(&key, StateRecord::of(object));
            state::note_full(turn, run)?;
        }
        let definition = run.definition.clone();
        for replayed in self.mapped.results {
            let ReplayedResult {
                scope,
                step,
                result,
            } = replayed;
            run.record.left_count += 1;
            if scope.number == ScopeNumber::ROOT && definition.definition.step(step).has_output() {
                run.progress(ScopeNumber::ROOT).last_left = Some(step);
            }
            let result = StepResult {
                output: result.output.map(|former| stored[&former]),
                order: run.record.left_count,
                ..result
            };
            turn.put::<StepResults>(&(run.number, scope.number, step), result.clone());
            run.note_taken_over(scope, step, result);
        }
        // They count as entered and left.
        run.record.activations_count = run.record.left_count;
        run.record.scopes.opened_count = self.mapped.scopes_count;
        let at = Cursor::Step {
            step: self.step,
            visits_count: self.visit - 1,
            is_entered: true,
        };
        run.record.resumption.cursor = Some(RunCursor {
            at,
            is_after_success: false,
        });
        Ok(())
    }
}
