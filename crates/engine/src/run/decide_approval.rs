//! Deciding about an approval (W61).

use super::advance::advance_after_wait;
use super::approval;
use super::create::{check_open, find};
use super::step_selector::StepSelector;
use super::step_timer::end_waiting;
use crate::ids::{Comment, Namespace, RunId};
use crate::reply::ApprovalDecided;
use crate::tables::{ActivationState, DecisionRecord, Work};
use crate::turn::{Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use serde::{Deserialize, Serialize};

/// Approves or rejects what a step of a run asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideApproval {
    /// The run.
    pub run_id: RunId,
    /// The step that waits for a decision.
    pub selector: StepSelector,
    /// Whether it is an approval; otherwise, it is a rejection.
    pub is_approved: bool,
    /// What is said about it.
    pub comment: Option<Comment>,
}

impl DecideApproval {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<ApprovalDecided> {
        let mut run = find(turn, namespace, &self.run_id)?;
        check_open(&run)?;
        let is_of_run = self.selector.is_of_attempt(&run, &self.run_id);
        let activation = self.selector.find(
            turn,
            &mut run,
            |_, active| Ok(is_of_run && matches!(active.state, ActivationState::Approval(_))),
            |named| Undeliverable::ApprovalNotOpen {
                run_id: self.run_id.clone(),
                named,
            },
        )?;
        let active = run.take(turn, activation)?;
        let mut active = active.expect("the step that waits was found in this turn");
        let ActivationState::Approval(open) = &active.state else {
            panic!("the step waits for a decision")
        };
        let decision = DecisionRecord {
            actor: approval::decider(turn, (namespace, open))?,
            is_approved: self.is_approved,
            comment: self.comment.clone(),
            at_ms: turn.now_ms(),
        };
        let step = run.definition.definition.step(active.step).name.clone();
        let decided = approval::decide(turn, &mut run, &mut active, decision)?;
        let reply = ApprovalDecided {
            step,
            visit: active.visit,
            outcome: decided.as_ref().map(|ended| ended.outcome.clone()),
        };
        let at = run.at(&active);
        if decided.is_some() {
            end_waiting(turn, &run, &mut active);
        }
        run.put_back(active);
        turn.put_back_run(run);
        if let Some(target_result) = decided {
            let work = Work::FinishStep {
                activation,
                target_result,
            };
            advance_after_wait(turn, at, work)?;
        }
        Ok(reply)
    }
}
