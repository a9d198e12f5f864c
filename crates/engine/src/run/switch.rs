//! Steps that lead where conditions say (W60).

use super::evaluation::Evaluation;
use super::failure::failed;
use super::finish_step::{Left, exit_step};
use super::outcome::{Destination, destination, name};
use super::render::{DataContext, EXPRESSION_FAILED};
use crate::definition::{StepKind, SwitchStep, Target};
use crate::ids::OutcomeName;
use crate::run::work_queue::WorkQueue;
use crate::store::StoreError;
use crate::tables::{Activation, EventKind, TargetResult};
use crate::turn::{LoadedRun, Turn, TurnResult};

/// Enters a switch, and leaves it for where it leads.
pub(super) fn enter(
    turn: &mut Turn<'_, '_>,
    queue: &mut WorkQueue,
    run: &mut LoadedRun,
    active: &Activation,
) -> TurnResult<()> {
    let record = run.definition.clone();
    let definition = &record.definition;
    let step = definition.step(active.step);
    let StepKind::Switch(switch) = &step.kind else {
        panic!("only switches lead where conditions say");
    };
    let (outcome, target) = match choose(turn, run, active, switch)? {
        Ok(Some((arm, target))) => {
            run.note(active, EventKind::SwitchTaken { arm, target });
            let outcome = match arm {
                Some(_) => OutcomeName::new(definition.target_name(target)),
                None => OutcomeName::new(name::DEFAULT),
            };
            let outcome = outcome.expect("the names of targets were checked");
            (Ok(outcome), Some(Destination::Target(target)))
        }
        Ok(None) => (Ok(name::of(name::NO_MATCH)), None),
        Err(reason) => (Err(reason), None),
    };
    let target_result = match outcome {
        Ok(outcome) => TargetResult::of_engine(outcome),
        Err(reason) => failed(turn, run, EXPRESSION_FAILED, reason),
    };
    let left = Left {
        active,
        destination: target.or_else(|| destination(definition, step, &target_result.outcome)),
        target_result,
    };
    exit_step(turn, queue, run, left)
}

/// The first arm whose condition is true, or the default, and where it leads. The error says why a condition has no
/// value.
type Choice = Result<Option<(Option<u16>, Target)>, String>;

fn choose(
    turn: &mut Turn<'_, '_>,
    run: &mut LoadedRun,
    active: &Activation,
    switch: &SwitchStep,
) -> Result<Choice, StoreError> {
    let mut evaluation = Evaluation::with(DataContext::of(active.scope));
    for (position, arm) in (0..).zip(&switch.arms) {
        match evaluation.is_true(turn, run, &arm.when)? {
            Ok(true) => return Ok(Ok(Some((Some(position), arm.target)))),
            Ok(false) => {}
            Err(reason) => return Ok(Err(reason)),
        }
    }
    Ok(Ok(switch.default.map(|target| (None, target))))
}
