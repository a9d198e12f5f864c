//! A run that is cut and resumed ends as one that is not, and executes no step again that has succeeded (W89).

use super::block_trees::{
    Expected, ListEnd, answer, begin, begin_with, counts, go_on, play, try_to_play,
};
use super::player::{Player, create};
use super::resumed_history::expect_no_repeats;
use super::trees::{JOINS, List, Step, Text, lists};
use super::{budgets, config, tree_tasks};
use crate::invariants::{read, rows};
use flotilla_engine::Budgets;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::ids::{RunId, RunNumber, ScopeNumber};
use flotilla_engine::rows::{Records, RunStatus, Runs, States, TimerKind, Timers};
use flotilla_engine::{
    Body, CancelRun, FireTimer, Rejection, ResumeRejection, ResumeRevision, ResumeRun,
    VersionChoice,
};
use proptest::prelude::*;

/// What happens to a run between two answers.
#[derive(Clone, Copy, Debug)]
enum Cut {
    Nothing,
    /// It is made to end and resumed.
    Ended {
        by: CutBy,
        /// Whether that comes before the deferred work of the answer is done.
        is_early: bool,
        revision: Revision,
    },
    /// A task of it fails, unless that may be in an iteration. The run is resumed if it ends with a failure.
    Failed,
}

/// What makes a run end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutBy {
    Cancel,
    ForcedCancel,
    Timeout,
}

/// The timeout of a run that is cut, in milliseconds. It passes only where the run is cut.
const TIMEOUT_MS: u64 = 100_000;

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
    let by = prop::sample::select(vec![CutBy::Cancel, CutBy::ForcedCancel, CutBy::Timeout]);
    let ended = (by, any::<bool>(), revision);
    let ended = ended.prop_map(|(by, is_early, revision)| Cut::Ended {
        by,
        is_early,
        revision,
    });
    let cut = prop_oneof![4 => Just(Cut::Nothing), 3 => ended, 1 => Just(Cut::Failed)];
    prop::collection::vec(cut, 1..8)
}

fn run_id() -> RunId {
    RunId::new("it").expect("an id")
}

/// Makes a run end. False if it cannot time out yet, because it has been resumed, but has not continued.
fn end(player: &mut Player, by: CutBy) -> bool {
    if by == CutBy::Timeout {
        let timers = rows::<Timers>(&player.store, &());
        let timer_of = |kind| timers.iter().find(|(timer, ())| timer.kind == kind);
        let Some(&(timer, ())) = timer_of(TimerKind::RunTimeout) else {
            let is_deferred = timer_of(TimerKind::Continuation).is_some();
            assert!(is_deferred, "a run that has continued can time out");
            return false;
        };
        player.now_ms += TIMEOUT_MS;
        play(player, Body::FireTimer(FireTimer { timer }));
        return true;
    }
    play(
        player,
        Body::CancelRun(CancelRun {
            run_id: run_id(),
            reason: None,
            is_forced: by == CutBy::ForcedCancel,
        }),
    );
    true
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

/// The text of a version of a run that is cut, with steps that are skipped before each step.
fn text_of(list: &List, version: usize, skipped_count: usize) -> String {
    let text = Text::of_version(list, version, skipped_count);
    text.replacen(" list\n", &format!(" list timeout={TIMEOUT_MS}\n"), 1)
}

/// Creates another revision of a tree, with the same steps.
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
    go_on(player);
    while status(player, run).is_open() {
        answer(player, run);
        go_on(player);
    }
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

/// A run that is cut.
struct CutRun<'a> {
    player: &'a mut Player,
    run: RunNumber,
    list: &'a List,
    versions_count: usize,
    skipped_count: usize,
    /// Whether a task was made to fail since the run began or was resumed.
    has_failed: bool,
}

impl<'a> CutRun<'a> {
    fn begin(player: &'a mut Player, list: &'a List) -> Self {
        let text = text_of(list, 1, FIRST_SKIPPED_COUNT);
        let run = begin_with(player, &text);
        Self {
            player,
            run,
            list,
            versions_count: 1,
            skipped_count: FIRST_SKIPPED_COUNT,
            has_failed: false,
        }
    }

    fn status(&self) -> RunStatus {
        status(self.player, self.run)
    }

    /// Plays a run to its end with these cuts.
    fn play(mut self, cuts: &[Cut]) -> RunNumber {
        let mut cuts = cuts.iter();
        loop {
            match cuts.next() {
                Some(&Cut::Ended {
                    by,
                    is_early,
                    revision,
                }) => {
                    self.end((by, is_early), revision);
                    continue;
                }
                Some(Cut::Failed) if !any_list(self.list, &has_tasks_in_loop) => {
                    tree_tasks::fail_last(self.player);
                    self.has_failed = true;
                }
                Some(Cut::Failed | Cut::Nothing) | None => {}
            }
            go_on(self.player);
            if self.status().is_open() {
                answer(self.player, self.run);
            } else if !self.resume_failed() {
                return self.run;
            }
        }
    }

    /// Makes the run end and resumes it.
    fn end(&mut self, (by, is_early): (CutBy, bool), revision: Revision) {
        if !is_early {
            go_on(self.player);
        }
        if !self.status().is_open() || !end(self.player, by) {
            return;
        }
        // A run that is cancelled waits for its workers.
        tree_tasks::fail_all(self.player);
        if self.status().is_open() || !is_early {
            go_on(self.player);
        }
        // It may have completed before it was cancelled.
        if self.status() == RunStatus::Ended(TerminalStatus::Completed) {
            return;
        }
        let skipped_count = match revision {
            Revision::AddedSteps => self.skipped_count + 1,
            Revision::RemovedSteps => self.skipped_count.saturating_sub(1),
            Revision::Unchanged | Revision::SameSteps => self.skipped_count,
        };
        self.versions_count += 1;
        let text = text_of(self.list, self.versions_count, skipped_count);
        if resume_with(self.player, revision, &text) {
            self.skipped_count = skipped_count;
        }
        self.has_failed = false;
    }

    /// Resumes the run if it may have ended because a task was made to fail. False if it has ended for good.
    fn resume_failed(&mut self) -> bool {
        let is_completed = self.status() == RunStatus::Ended(TerminalStatus::Completed);
        if is_completed || !std::mem::take(&mut self.has_failed) {
            return false;
        }
        match try_to_play(self.player, resume(None)) {
            Ok(_) => true,
            Err(Rejection::Resume(ResumeRejection::StepNeeded { .. })) => false,
            Err(rejection) => panic!("{rejection}"),
        }
    }
}

/// Whether a list has a loop with tasks. A loop may tolerate that they fail; and of a step in an iteration, the history has
/// the failure, but not the success after a resume.
fn has_tasks_in_loop(list: &List) -> bool {
    let acts = |list: &List| list.iter().any(|step| matches!(step, Step::Acts));
    let has_tasks = |step: &Step| match step {
        Step::Loops(_, inner) | Step::Tolerates(inner) => any_list(inner, &acts),
        _ => false,
    };
    list.iter().any(has_tasks)
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
        let run = CutRun::begin(&mut cut, &list).play(&cuts);
        let (mut expected, mut found) = (end_of(&whole, run), end_of(&cut, run));
        if cuts.iter().any(|cut| matches!(cut, Cut::Failed)) {
            // A branch that is resumed sees the writes that were joined when its step failed, and adds to them.
            let is_sum = |field: &String| field.starts_with("\"n\":");
            expected.fields.retain(|field| !is_sum(field));
            found.fields.retain(|field| !is_sum(field));
        }
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
        let run = CutRun::begin(&mut player, &list).play(&cuts);
        expect_no_repeats(&player, budgets);
        prop_assert_eq!(open_runs(&player), Vec::new());
        let is_forced = |cut: &Cut| matches!(cut, Cut::Ended { by: CutBy::ForcedCancel, .. });
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
    let cut = Cut::Ended {
        by: CutBy::Cancel,
        is_early: true,
        revision: Revision::Unchanged,
    };
    let run = CutRun::begin(&mut player, &list).play(&[Cut::Nothing, cut]);
    assert!(!status(&player, run).is_open());
}

/// The history has the failure of a step in an iteration, but not its success after a resume.
#[test]
fn a_step_of_an_iteration_succeeds_after_it_was_cut_twice() {
    let branch = vec![Step::Calls, Step::Calls];
    let list = vec![Step::Tolerates(vec![
        Step::Fans("parallel", vec![branch]),
        Step::Waits,
    ])];
    let mut budgets = Budgets::default();
    budgets.turn.steps = 3;
    budgets.entry.rows = 40;
    let mut player = Player::with(budgets);
    let cut = |by, is_early| Cut::Ended {
        by,
        is_early,
        revision: Revision::Unchanged,
    };
    let cuts = [
        Cut::Nothing,
        cut(CutBy::ForcedCancel, true),
        cut(CutBy::Cancel, false),
    ];
    let run = CutRun::begin(&mut player, &list).play(&cuts);
    assert!(!status(&player, run).is_open());
}
