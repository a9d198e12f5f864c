//! Runs of trees with compensations, handlers, timeouts and fallbacks that are resumed execute nothing again that has
//! succeeded and was not undone (W89).

use super::player::Player;
use super::resumed_history::expect_no_repeats;
use super::trees::{ConfiguredTree, ROOT_BLOCK};
use super::undone_history::{definition_of, is_good};
use super::undone_trees::{Input, Trial, inputs, trees_in};
use super::{budgets, config};
use crate::invariants::rows;
use flotilla_engine::ids::{RunId, RunNumber};
use flotilla_engine::rows::{
    Activation, BranchResults, EventKind, History, JoinDecision, ResumableSteps, Runs,
};
use flotilla_engine::{Body, Budgets, Rejection, ResumeRejection, ResumeRun};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;

/// Root blocks of workflows. A run that has executed its compensations cannot be resumed: in most of them, a failure leads to
/// a terminal that keeps the work.
const ROOT_BLOCKS: [&str; 3] = [ROOT_BLOCK, KEEPS_WORK, KEEPS_WORK];
const KEEPS_WORK: &str = "define tree 1 on-error=onError on-cancel=onCancel
 terminal Kept failed compensates=false
 start: block -> success=flo.Completed failure=Kept timeout=Kept cancelled=Kept odd=Kept
 onError: block
 onCancel: block
";

/// What happens to the runs before each of their ends. Most ends are forced cancels, which undo nothing; the last one is not.
fn periods() -> impl Strategy<Value = Vec<Vec<Input>>> {
    let period = (
        inputs(),
        0..20_usize,
        prop::option::weighted(0.7, any::<Index>()),
    );
    let period = period.prop_map(|(mut inputs, count, cancelled)| {
        inputs.truncate(count);
        let is_forced = true;
        inputs.extend(cancelled.map(|pick| Input::Cancel { pick, is_forced }));
        inputs
    });
    let periods = (prop::collection::vec(period, 1..5), inputs());
    periods.prop_map(|(mut periods, last)| {
        periods.push(last);
        periods
    })
}

/// Plays a run of a tree to its end, resumes it, and so on. Returns the trial and how often the run was resumed.
fn play_periods(tree: &ConfiguredTree, periods: &[Vec<Input>], budgets: Budgets) -> (Trial, usize) {
    let mut trial = Trial::begin(tree, budgets);
    let mut resumes_count = 0;
    for (number, inputs) in periods.iter().enumerate() {
        if number > 0 {
            if !is_followed(&trial.player) || !resume(&mut trial) {
                break;
            }
            resumes_count += 1;
        }
        trial.play(inputs);
    }
    trial.check_nothing_is_open();
    expect_no_repeats(&trial.player, budgets);
    (trial, resumes_count)
}

/// Whether the invariants can follow a resume. They miss the success of a step that has failed in an iteration, which the
/// history does not have, and the ends of the branches that a step has cancelled because of others.
fn is_followed(player: &Player) -> bool {
    let has_lost = |run: RunNumber, active: &Activation| {
        active.state.branches().is_some_and(|state| {
            let is_decided = matches!(
                state.decision,
                Some(JoinDecision::Success | JoinDecision::First(_))
            );
            let ended = rows::<BranchResults>(&player.store, &(run, active.number));
            is_decided && ended.len() < state.begun_count as usize
        })
    };
    let stopped = rows::<ResumableSteps>(&player.store, &());
    let mut stopped = stopped.iter();
    let has_any_lost = stopped.any(|((run, ..), active)| has_lost(*run, active));
    !has_any_lost && !has_failed_in_iteration(player)
}

/// Whether a step has failed in an iteration.
fn has_failed_in_iteration(player: &Player) -> bool {
    let runs = rows::<Runs>(&player.store, &()).into_iter();
    let mut iterations = runs.flat_map(|(run, _)| {
        let definition = definition_of(player, run);
        let records = rows::<History>(&player.store, &run).into_iter();
        let events = records.flat_map(|(_, record)| record.events);
        events.filter(move |event| event.scope.path.is_of_iteration(&definition))
    });
    iterations.any(|event| match event.kind {
        EventKind::StepCompleted { outcome, .. } => !is_good(&outcome),
        _ => false,
    })
}

/// Resumes the run of the tree. False if the rules do not allow it.
fn resume(trial: &mut Trial) -> bool {
    let resumed = trial.play_one(Body::ResumeRun(ResumeRun {
        run_id: RunId::new("it").expect("an id"),
        from: None,
        revision: None,
        metadata: None,
    }));
    match resumed {
        Ok(_) => true,
        Err(Rejection::Resume(
            ResumeRejection::Completed(_)
            | ResumeRejection::Compensated(_)
            | ResumeRejection::StepNeeded { .. },
        )) => false,
        Err(rejection) => panic!("{rejection}"),
    }
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn a_resumed_run_executes_nothing_again_that_was_not_undone(
        tree in trees_in(&ROOT_BLOCKS), periods in periods(), budgets in budgets(),
    ) {
        play_periods(&tree, &periods, budgets);
    }
}

/// Proves that the random runs reach every kind of end.
#[test]
fn random_trees_are_resumed_after_every_kind_of_end() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    let mut resumes_count = 0;
    let strategy = (trees_in(&ROOT_BLOCKS), periods());
    for _ in 0..100 {
        let tree = strategy.new_tree(&mut runner).expect("a tree");
        let (tree, periods) = tree.current();
        let (trial, count) = play_periods(&tree, &periods, Budgets::default());
        if count > 0 {
            reached.extend(trial.reached());
        }
        resumes_count += count;
    }
    let missing: Vec<&str> = REACHED
        .split_whitespace()
        .filter(|name| !reached.contains(*name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
    assert!(resumes_count > 60, "only {resumes_count} resumes");
}

/// Statuses, phases, timeouts, events and what is undone for a step, of runs that were resumed.
const REACHED: &str = "Step Completed Failed Cancelled Forced Cancelling OnError OnCancel Total Attempt \
    RunResumed CompensationStarted CompensationCompleted FallbackStarted StepRetry StepCancelled";
