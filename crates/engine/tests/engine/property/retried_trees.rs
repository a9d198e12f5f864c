//! A run that begins with a step of an ended run ends as that one does, and executes no step before it again (W90).

use super::block_trees::{begin, play, start_as};
use super::player::Player;
use super::resumed_trees::{end_of, play_whole, revise, status};
use super::trees::lists;
use super::{budgets, config};
use crate::invariants::{read, rows};
use flotilla_engine::definition::{Definition, StepIndex, StepKind, TerminalStatus};
use flotilla_engine::ids::{RunId, RunNumber, ScopeNumber};
use flotilla_engine::rows::{
    DefinitionRecord, Definitions, EventKind, History, RunNames, RunStatus, Runs, StepResults,
};
use flotilla_engine::{Body, RetryFrom, RetryRun};
use proptest::prelude::*;
use proptest::sample::Index;

/// The steps of the run itself that were entered, in their order.
fn entered(player: &Player, run: RunNumber) -> Vec<StepIndex> {
    let events = rows::<History>(&player.store, &run)
        .into_iter()
        .flat_map(|(_, record)| record.events);
    let own = events.filter(|event| {
        event.kind == EventKind::StepStarted && event.scope.number == ScopeNumber::ROOT
    });
    own.filter_map(|event| event.step).collect()
}

fn definition_of(player: &Player, run: RunNumber) -> DefinitionRecord {
    let record = read::<Runs>(&player.store, &run).expect("the run");
    read::<Definitions>(&player.store, &record.definition).expect("its definition")
}

fn is_in_loop(definition: &Definition, step: StepIndex) -> bool {
    let mut loops = (0..).map(StepIndex).zip(&definition.steps);
    loops.any(|(index, above)| {
        matches!(above.kind, StepKind::ForEach(_)) && definition.is_below(step, index)
    })
}

/// A result: the step, the visit, the outcome, and whether the results of its branches can be read.
type Found = (StepIndex, u32, String, bool);

/// The results of a run outside iterations.
fn results(player: &Player, run: RunNumber) -> Vec<Found> {
    let record = definition_of(player, run);
    let mut results = Vec::new();
    for ((_, _, step), result) in rows::<StepResults>(&player.store, &run) {
        if !is_in_loop(&record.definition, step) {
            let outcome = result.outcome.to_string();
            results.push((step, result.visit, outcome, result.first_scope.is_some()));
        }
    }
    results.sort_unstable();
    results
}

/// The id of the run that retries another one.
fn again(of: &str) -> String {
    format!("{of}-again")
}

/// Retries a run from a step.
fn retry(player: &mut Player, of: &str, from: &RetryFrom) -> RunNumber {
    let number_of = |player: &Player, id: &str| {
        let id = RunId::new(id).expect("an id");
        let names = rows::<RunNames>(&player.store, &()).into_iter();
        let mut own = names.filter(|((_, name), _)| *name == id);
        own.next().expect("the run has a name").1
    };
    let run = number_of(player, of);
    play(
        player,
        Body::RetryRun(RetryRun {
            run_id: RunId::new(of).expect("an id"),
            run,
            from: Some(from.clone()),
            start: start_as(&again(of)),
        }),
    );
    number_of(player, &again(of))
}

/// How the runs of a test are retried.
struct Retries {
    is_forced: bool,
}

impl Retries {
    /// Retries a run that has ended from one of its steps, and plays the new run to its end.
    fn play(&self, player: &mut Player, (of, run): (&str, RunNumber), step: Index) -> RunNumber {
        let step = *step.get(&entered(player, run));
        let record = definition_of(player, run);
        let from = RetryFrom {
            step: record.definition.step(step).name.clone(),
            is_forced: self.is_forced,
        };
        let retried = retry(player, of, &from);
        play_whole(player, retried);
        retried
    }
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn a_run_that_begins_with_a_step_ends_as_the_run_that_it_retries(
        list in lists(&["parallel"]), steps in any::<(Index, Index)>(), (is_revised, is_forced) in any::<(bool, bool)>(), budgets in budgets(),
    ) {
        let mut player = Player::with(budgets);
        let first = begin(&mut player, &list);
        play_whole(&mut player, first);
        if is_revised {
            revise(&mut player, &list, 0);
        }
        let retries = Retries { is_forced };
        let second = retries.play(&mut player, ("it", first), steps.0);
        let third = retries.play(&mut player, (&again("it"), second), steps.1);
        let all_entered = entered(&player, first);
        for run in [second, third] {
            prop_assert!(all_entered.ends_with(&entered(&player, run)));
            prop_assert_eq!(status(&player, run), status(&player, first));
            if status(&player, first) == RunStatus::Ended(TerminalStatus::Completed) {
                prop_assert_eq!(end_of(&player, run).fields, end_of(&player, first).fields);
            }
            prop_assert_eq!(results(&player, run), results(&player, first));
        }
    }
}
