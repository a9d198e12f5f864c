//! The results of checks of values against JSON Schemas: obligations fulfilled outside `apply` (W4, W67).

use super::advance::{advance, advance_after_wait};
use super::child::{self, NewChild, Refusal};
use super::outcome::name;
use super::run_output;
use crate::ids::{Namespace, RunNumber, ScopeNumber};
use crate::rejection::Rejection;
use crate::reply::Done;
use crate::run::work_queue::WorkQueue;
use crate::tables::{
    ActivationState, ChildInputVerdict, DefinitionNumber, Definitions, SchemaChecks, SchemaVerdict,
    Work,
};
use crate::turn::{ActivationRef, LoadedRun, Turn, TurnResult};
use serde::{Deserialize, Serialize};

/// Delivers whether the input of a child, or the output of a step or a run, satisfies its schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideSchemaCheck {
    /// The run.
    pub run: RunNumber,
    /// Its activation that waits for the verdict; [`RUN_OUTPUT_CHECK`](crate::view::RUN_OUTPUT_CHECK) for the run's output.
    pub activation: u64,
    /// The attempt whose value was checked: the next one has another. For the output of a run, 1 and the number of its resumes.
    pub attempt: u32,
    /// The definition that has the schema: that of the child, or of the run.
    pub definition: DefinitionNumber,
    /// What the check found.
    pub verdict: SchemaVerdict,
}

impl DecideSchemaCheck {
    pub(crate) fn apply(&self, turn: &mut Turn<'_, '_>, _: &Namespace) -> TurnResult<Done> {
        let check = (self.run, self.activation);
        if turn.get::<SchemaChecks>(&check)?.is_none() {
            return Err(Rejection::ActivationStale.into());
        }
        let mut run = turn.load_run(self.run)?;
        if turn.is_quarantined(self.run) {
            return Err(Rejection::RunQuarantined(run.record.id.clone()).into());
        }
        turn.delete::<SchemaChecks>(&check);
        if self.activation == run_output::CHECK {
            if self.attempt != run_output::attempt(&run.record) {
                return Err(Rejection::ActivationStale.into());
            }
            if self.definition != run.record.definition {
                return Err(Rejection::InputValidationStale.into());
            }
            run.end_wait(ScopeNumber::ROOT);
            turn.put_back_run(run);
            let verdict = self.verdict.clone();
            advance(turn, self.run, Work::DecideRunOutput { verdict })?;
            return Ok(Done {});
        }
        let active = run.take(turn, self.activation)?;
        let mut active = active.ok_or(Rejection::ActivationStale)?;
        if active.attempts_count() != self.attempt {
            return Err(Rejection::ActivationStale.into());
        }
        // The work may be done in a later entry. Until then, the step awaits no verdict.
        let state = std::mem::replace(&mut active.state, ActivationState::Executing);
        let (activation, verdict) = (self.activation, self.verdict.clone());
        let (definition, work) = match state {
            ActivationState::ChildInput { definition } => {
                let checked = ChildInputVerdict {
                    activation,
                    definition,
                    verdict,
                };
                (definition, Work::DecideChild(checked))
            }
            ActivationState::OutputCheck(output) => {
                let work = Work::DecideOutput {
                    activation,
                    output: *output,
                    verdict,
                };
                (run.record.definition, work)
            }
            _ => return Err(Rejection::ActivationStale.into()),
        };
        if definition != self.definition {
            return Err(Rejection::InputValidationStale.into());
        }
        run.put_back(active);
        turn.put_back_run(run);
        let at = ActivationRef {
            run: self.run,
            activation,
        };
        advance_after_wait(turn, at, work)?;
        Ok(Done {})
    }
}

/// Starts the child, or finishes its step with `execution_failure`.
pub(super) fn decide_child(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    checked: ChildInputVerdict,
) -> TurnResult<()> {
    let Some(active) = run.take(turn, checked.activation)? else {
        return Ok(());
    };
    let refusal = match checked.verdict {
        // The workflow may have been disabled during validation (W42).
        SchemaVerdict::Valid => match child::refusal_of(turn, run, &active)? {
            None if turn.get::<Definitions>(&checked.definition)?.is_none() => {
                // The workflow was deleted and created again during validation.
                run.put_back(active);
                return child::begin(turn, queue, run, checked.activation);
            }
            None => {
                let definition = checked.definition;
                return child::start(turn, queue, run, NewChild { active, definition });
            }
            Some(refusal) => refusal,
        },
        SchemaVerdict::Invalid { detail } => Refusal::new(
            name::EXECUTION_FAILURE,
            Rejection::InputInvalid(detail).to_string(),
        ),
    };
    let work = child::refuse(turn, run, active, refusal);
    queue.push(run.number, work);
    Ok(())
}
