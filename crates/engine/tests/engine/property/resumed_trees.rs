//! A run that is cut and resumed ends as one that is not, and executes no step again that has succeeded (W89).

use super::block_trees::{
    Expected, ListEnd, answer, begin, begin_with, counts, go_on, play, try_to_play,
};
use super::player::{Player, create};
use super::trees::{JOINS, List, Step, Text, lists};
use super::{budgets, config, tree_tasks};
use crate::invariants::{read, rows};
use flotilla_engine::Budgets;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::ids::{RunId, RunNumber, ScopeNumber};
use flotilla_engine::rows::{Records, RunStatus, Runs, States};
use flotilla_engine::{
    Body, CancelRun, Rejection, ResumeRejection, ResumeRevision, ResumeRun, VersionChoice,
};
use proptest::prelude::*;

/// What happens to a run between two answers.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Nothing,
    /// It is cancelled and resumed.
    Cancelled {
        is_forced: bool,
        /// Whether that comes before the deferred work of the answer is done.
        is_early: bool,
        revision: Revision,
    },
}

/// How many skipped steps come before each step of a run that is cut, at its start.
const FIRST_SKIPPED_COUNT: usize = 1;

/// The revision with which a run continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Revision {
    Unchanged,
    /// Another one with the same steps.
    SameSteps,
    /// Another one with more steps, which are skipped.
    AddedSteps,
    /// Another one without some of the steps that are skipped.
    RemovedSteps,
}

fn cuts() -> impl Strategy<Value = Vec<Cut>> {
    let revision = prop::sample::select(vec![
        Revision::Unchanged,
        Revision::SameSteps,
        Revision::AddedSteps,
        Revision::RemovedSteps,
    ]);
    let cut = prop_oneof![
        2 => Just(Cut::Nothing),
        1 => (any::<bool>(), any::<bool>(), revision).prop_map(
            |(is_forced, is_early, revision)| Cut::Cancelled { is_forced, is_early, revision }
        ),
    ];
    prop::collection::vec(cut, 1..8)
}

fn run_id() -> RunId {
    RunId::new("it").expect("an id")
}

fn cancel(player: &mut Player, is_forced: bool) {
    play(
        player,
        Body::CancelRun(CancelRun {
            run_id: run_id(),
            reason: None,
            is_forced,
        }),
    );
}

fn resume(revision: Option<ResumeRevision>) -> Body {
    Body::ResumeRun(ResumeRun {
        run_id: run_id(),
        from: None,
        revision,
        metadata: None,
    })
}

pub(super) fn status(player: &Player, run: RunNumber) -> RunStatus {
    read::<Runs>(&player.store, &run).expect("the run").status
}

/// Makes another revision of a tree with the same steps the latest one.
pub(super) fn revise(player: &mut Player, list: &List, number: usize) {
    let text = Text::of_version(list, number + 2, 0);
    play(player, create(&text, "revised"));
}

/// The end of a run.
#[derive(Debug, PartialEq)]
pub(super) struct RunEnd {
    pub(super) status: RunStatus,
    /// The fields of its state.
    pub(super) fields: Vec<String>,
    /// How many records were emitted, children started, and tasks completed.
    made: (usize, usize, usize),
}

pub(super) fn end_of(player: &Player, run: RunNumber) -> RunEnd {
    let state = read::<States>(&player.store, &(run, ScopeNumber::ROOT));
    let state = state.map_or(String::new(), |state| state.object.as_str().to_owned());
    let fields = state.trim_matches(['{', '}']).split(',').map(str::to_owned);
    let mut fields: Vec<String> = fields.collect();
    fields.sort_unstable();
    let records_count = rows::<Records>(&player.store, &()).len();
    let children_count = rows::<Runs>(&player.store, &()).len() - 1;
    let tasks_count = tree_tasks::completed_count(player);
    RunEnd {
        status: status(player, run),
        fields,
        made: (records_count, children_count, tasks_count),
    }
}

/// The runs that have not ended.
fn open_runs(player: &Player) -> Vec<RunId> {
    let runs = rows::<Runs>(&player.store, &()).into_iter();
    let open = runs.filter(|(_, run)| run.status.is_open());
    open.map(|(_, run)| run.id).collect()
}

/// Plays a run to its end.
pub(super) fn play_whole(player: &mut Player, run: RunNumber) {
    play_cut(player, run, (&Vec::new(), &[]));
}

/// Resumes a run with another revision, which has this text. False if the run has stopped at a step that this revision does
/// not have, and continues with its own.
fn resume_with(player: &mut Player, revision: Revision, text: &str) -> bool {
    if revision == Revision::Unchanged {
        play(player, resume(None));
        return true;
    }
    play(player, create(text, "revised"));
    let latest = ResumeRevision {
        version: VersionChoice::Latest,
        is_forced: revision != Revision::SameSteps,
    };
    match try_to_play(player, resume(Some(latest))) {
        Ok(_) => true,
        Err(Rejection::Resume(ResumeRejection::Drift(_))) if revision == Revision::RemovedSteps => {
            play(player, resume(None));
            false
        }
        Err(rejection) => panic!("{rejection}"),
    }
}

/// Plays a run to its end, cut as it is said.
fn play_cut(player: &mut Player, run: RunNumber, (list, cuts): (&List, &[Cut])) {
    let mut cuts = cuts.iter().enumerate();
    let mut skipped_count = FIRST_SKIPPED_COUNT;
    loop {
        if let Some((
            number,
            &Cut::Cancelled {
                is_forced,
                is_early,
                revision,
            },
        )) = cuts.next()
            && status(player, run).is_open()
        {
            if !is_early {
                go_on(player);
            }
            if status(player, run).is_open() {
                cancel(player, is_forced);
                // A run that is cancelled waits for its workers.
                tree_tasks::fail_all(player);
                if status(player, run).is_open() || !is_early {
                    go_on(player);
                }
                // It may have completed before it was cancelled.
                if status(player, run) != RunStatus::Ended(TerminalStatus::Completed) {
                    let skipped = match revision {
                        Revision::AddedSteps => skipped_count + 1,
                        Revision::RemovedSteps => skipped_count.saturating_sub(1),
                        Revision::Unchanged | Revision::SameSteps => skipped_count,
                    };
                    let text = Text::of_version(list, number + 2, skipped);
                    if resume_with(player, revision, &text) {
                        skipped_count = skipped;
                    }
                }
            }
            continue;
        }
        go_on(player);
        if !status(player, run).is_open() {
            return;
        }
        answer(player, run);
    }
}

/// Whether a tree has a block that is tried again: a resume starts again with its first attempt.
fn has_retried_block(list: &[Step]) -> bool {
    let breaks = |list: &List| list.iter().any(|step| matches!(step, Step::Breaks));
    list.iter().any(|step| {
        let is_retried = |inner| matches!(step, Step::Nests(_)) && any_list(inner, &breaks);
        let mut blocks = step.blocks().iter();
        blocks.any(|inner| is_retried(inner) || has_retried_block(inner))
    })
}

/// Whether a condition holds of a list or one below it.
fn any_list(list: &List, holds: &dyn Fn(&List) -> bool) -> bool {
    let mut blocks = list.iter().flat_map(Step::blocks);
    holds(list) || blocks.any(|inner| any_list(inner, holds))
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn a_run_that_is_cut_anywhere_ends_as_one_that_is_not(
        list in lists(&["parallel"]), cuts in cuts(), budgets in budgets(),
    ) {
        let mut whole = Player::with(budgets);
        let run = begin(&mut whole, &list);
        play_whole(&mut whole, run);
        let mut cut = Player::with(budgets);
        let text = Text::of_version(&list, 1, FIRST_SKIPPED_COUNT);
        let run = begin_with(&mut cut, &text);
        play_cut(&mut cut, run, (&list, &cuts));
        let (expected, found) = (end_of(&whole, run), end_of(&cut, run));
        prop_assert_eq!(found.status, expected.status);
        if expected.status == RunStatus::Ended(TerminalStatus::Completed) {
            prop_assert_eq!(found.fields, expected.fields);
        }
        if !has_retried_block(&list) {
            prop_assert_eq!(found.made, expected.made);
        }
        prop_assert_eq!(open_runs(&cut), Vec::new());
    }

    #[test]
    fn a_run_that_is_cut_anywhere_ends_whatever_its_joins(
        list in lists(&JOINS), cuts in cuts(), budgets in budgets(),
    ) {
        let mut player = Player::with(budgets);
        let text = Text::of_version(&list, 1, FIRST_SKIPPED_COUNT);
        let run = begin_with(&mut player, &text);
        play_cut(&mut player, run, (&list, &cuts));
        prop_assert_eq!(open_runs(&player), Vec::new());
        let is_forced = |cut: &Cut| matches!(cut, Cut::Cancelled { is_forced: true, .. });
        // A forced cancel ends the run without an event for each step and scope.
        if !cuts.iter().any(is_forced) {
            let counts = counts(&player, run);
            let count = |name| counts.get(name).copied().unwrap_or_default();
            prop_assert_eq!(count("opened"), count("closed"));
            prop_assert_eq!(count("started"), count("completed") + count("cancelled"));
        }
    }

    #[test]
    fn a_run_that_has_failed_fails_again_where_it_did(
        list in lists(&["parallel", "parallel cancel"]), budgets in budgets(),
    ) {
        let is_good = Expected::default().add(&list) == ListEnd::Success;
        prop_assume!(!is_good && !has_retried_block(&list));
        let mut player = Player::with(budgets);
        let run = begin(&mut player, &list);
        play_whole(&mut player, run);
        let first = end_of(&player, run);
        play(&mut player, resume(None));
        play_whole(&mut player, run);
        prop_assert_eq!(first, end_of(&player, run));
    }
}

#[test]
fn a_signal_that_was_taken_before_a_cut_is_counted() {
    let list = vec![Step::Fans(
        "parallel",
        vec![
            vec![Step::Nests(vec![
                Step::Skips,
                Step::Nests(vec![Step::Waits, Step::Sets]),
            ])],
            vec![Step::Loops(
                1,
                vec![Step::Fans(
                    "parallel",
                    vec![vec![Step::Waits], vec![Step::Waits], vec![Step::Waits]],
                )],
            )],
        ],
    )];
    let mut budgets = Budgets::default();
    budgets.turn.steps = 2;
    budgets.entry.rows = 40;
    let mut player = Player::with(budgets);
    let run = begin(&mut player, &list);
    let cut = Cut::Cancelled {
        is_forced: false,
        is_early: true,
        revision: Revision::Unchanged,
    };
    play_cut(&mut player, run, (&list, &[Cut::Nothing, cut]));
    assert!(!status(&player, run).is_open());
}
