//! Completing a step whose accepted task waits for its report (W75).

use super::create::{check_open, find};
use super::step_selector::StepSelector;
use crate::ids::{Namespace, RunId};
use crate::reply::StepReported;
use crate::task::{self, TaskReport};
use crate::turn::{Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use serde::{Deserialize, Serialize};

/// Reports the outcome of an accepted task by run and step, without the task token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompleteStep {
    /// The run.
    pub run_id: RunId,
    /// The step whose task was accepted.
    pub selector: StepSelector,
    /// What is reported.
    pub report: TaskReport,
}

impl CompleteStep {
    pub(crate) fn apply(
        &self,
        turn: &mut Turn<'_, '_>,
        namespace: &Namespace,
    ) -> TurnResult<StepReported> {
        self.report.check()?;
        let mut run = find(turn, namespace, &self.run_id)?;
        check_open(&run)?;
        let is_of_run = self.selector.is_of_attempt(&run, &self.run_id);
        let activation = self.selector.find(
            turn,
            &mut run,
            |turn, active| match active.state.action_run() {
                Some(action_run) if is_of_run => task::is_report_awaited(turn, action_run),
                _ => Ok(false),
            },
            |named| Undeliverable::StepNotWaiting {
                run_id: self.run_id.clone(),
                named,
            },
        )?;
        let active = run.activation(turn, activation)?;
        let active = active.expect("the step was found in this turn");
        let action_run = active.state.action_run();
        let action_run = action_run.expect("the step waits for a report on an action run");
        let (step, visit) = (active.step, active.visit);
        let reply = StepReported {
            step: run.definition.definition.step(step).name.clone(),
            visit,
        };
        turn.put_back_run(run);
        task::end_accepted(turn, action_run, &self.report)?;
        Ok(reply)
    }
}
