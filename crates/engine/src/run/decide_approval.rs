//! Deciding about an approval (W61).

use super::advance::advance_after_wait;
use super::create::{check_open, find};
use super::step_timer::end_waiting;
use super::{approval, scope_search};
use crate::ids::{Comment, Namespace, RunId, ScopePathText, StepName};
use crate::rejection::Rejection;
use crate::reply::ApprovalDecided;
use crate::scope_path;
use crate::store::StoreError;
use crate::tables::{ActivationState, DecisionRecord, ScopePath, Work};
use crate::turn::{LoadedRun, Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use serde::{Deserialize, Serialize};

/// Approves or rejects what a step of a run asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideApproval {
    /// The run.
    pub run_id: RunId,
    /// The step; `None` for the only one that waits for a decision.
    pub step: Option<StepName>,
    /// The scope of the step; `None` for the only one.
    pub scope: Option<ScopePathText>,
    /// The visit to the step that the decision is about, from 1; `None` for the current one.
    pub visit: Option<u32>,
    /// Whether it is an approval; otherwise, it is a rejection.
    pub is_approved: bool,
    /// What is said about it.
    pub comment: Option<Comment>,
}

/// The open approvals that a rejection names.
const OPEN_SHOWN_MAX: usize = 10;

impl DecideApproval {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<ApprovalDecided> {
        let mut run = find(turn, namespace, &self.run_id)?;
        check_open(&run)?;
        let activation = self.activation(turn, &mut run)?;
        let active = run.take(turn, activation)?;
        let mut active = active.expect("the step that waits was found in this turn");
        let decision = DecisionRecord {
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

    /// The activation that the decision is about.
    fn activation(&self, turn: &mut Turn<'_, '_>, run: &mut LoadedRun) -> TurnResult<u64> {
        let scope = self.scope_path(run)?;
        let mut open = Vec::new();
        for number in run.active(turn)? {
            if self.is_about(turn, run, number, scope.as_ref())? {
                open.push(number);
            }
        }
        match open[..] {
            [activation] => Ok(activation),
            [] => Err(Rejection::from(Undeliverable::ApprovalNotOpen {
                run_id: self.run_id.clone(),
                named: self.named(),
            })
            .into()),
            _ => {
                let shown = open.iter().take(OPEN_SHOWN_MAX);
                let shown: Result<Vec<String>, StoreError> =
                    shown.map(|number| describe(turn, run, *number)).collect();
                Err(Rejection::from(Undeliverable::ScopeNeeded {
                    run_id: self.run_id.clone(),
                    open: shown?.join(", "),
                })
                .into())
            }
        }
    }

    /// The step that the decision is about, as the caller named it.
    fn named(&self) -> String {
        let visit = self.visit.map(|visit| format!("visit {visit} to "));
        let step = match &self.step {
            Some(step) => format!("step \"{step}\""),
            None => "a step".to_owned(),
        };
        let scope = self
            .scope
            .as_ref()
            .map(|scope| format!(" in scope \"{scope}\""));
        [visit.unwrap_or_default(), step, scope.unwrap_or_default()].concat()
    }

    fn scope_path(&self, run: &LoadedRun) -> Result<Option<ScopePath>, Rejection> {
        let text = self.scope.as_ref();
        text.map(|text| scope_search::parse(run, text)).transpose()
    }

    /// Whether an active step waits for this decision.
    fn is_about(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        number: u64,
        scope: Option<&ScopePath>,
    ) -> Result<bool, StoreError> {
        let Some(active) = run.activation(turn, number)?.cloned() else {
            return Ok(false);
        };
        let name = &run.definition.definition.step(active.step).name;
        let is_waiting = matches!(active.state, ActivationState::Approval(_));
        Ok(is_waiting
            && self.step.as_ref().is_none_or(|step| step == name)
            && self.visit.is_none_or(|visit| visit == active.visit)
            && scope.is_none_or(|path| *path == run.scope_id(active.scope).path))
    }
}

/// Names an active step for a caller.
fn describe(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    number: u64,
) -> Result<String, StoreError> {
    let active = run.activation(turn, number)?.cloned();
    let active = active.expect("the step is active");
    let definition = &run.definition.definition;
    let step = &definition.step(active.step).name;
    let path = scope_path::to_text(definition, &run.scope_id(active.scope).path);
    Ok(match path.is_empty() {
        true => format!("\"{step}\""),
        false => format!("\"{step}\" in scope \"{path}\""),
    })
}
