//! Runs of trees with compensations, handlers, timeouts and fallbacks undo what they have to, and nothing else (W80–W83).

use super::block_trees::{counts, decide, entry, play, play_entry, signal, start};
use super::player::{Player, command, create};
use super::tree_tasks::{failure, take};
use super::trees::{ConfiguredTree, JOINS, ROOT_BLOCK, Settings, Step, Text, weighted_lists};
use super::undone_history::{Observations, Success};
use super::{budgets, config, first_word};
use crate::invariants::{read, rows};
use crate::samples;
use flotilla_engine::definition::TerminalStatus;
use flotilla_engine::ids::{ActionName, Namespace, OutcomeName, RunId, ScopePathText, StepName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{
    ActionRuns, Activations, EventKind, History, PendingWorks, Ready, RunStatus, Runs,
    SchemaChecks, Scopes, TimerKey, TimerKind, Timers,
};
use flotilla_engine::view::{self, WaitingFor};
use flotilla_engine::{
    Body, Budgets, CancelRun, CompleteTask, FailKind, FireTimer, Rejection, Reply,
};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::BTreeSet;

/// What happens to the runs next.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// One of the things that they wait for.
    Awaited {
        pick: Index,
        answer: Answer,
        /// Whether deferred work is done before anything else happens.
        is_whole: bool,
    },
    /// One of the open runs is cancelled.
    Cancel { pick: Index, is_forced: bool },
}

/// How a task or an approval ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Success,
    /// A success with an outcome that ends a list.
    Custom,
    Failure,
    NonRetryable,
}

pub(super) fn inputs() -> impl Strategy<Value = Vec<Input>> {
    let answer = prop_oneof![
        6 => Just(Answer::Success),
        1 => Just(Answer::Custom),
        1 => Just(Answer::Failure),
        1 => Just(Answer::NonRetryable),
    ];
    let awaited = (any::<Index>(), answer, prop::bool::weighted(0.8));
    let awaited = awaited.prop_map(|(pick, answer, is_whole)| Input::Awaited {
        pick,
        answer,
        is_whole,
    });
    let cancel = (any::<Index>(), prop::bool::weighted(0.3));
    let cancel = cancel.prop_map(|(pick, is_forced)| Input::Cancel { pick, is_forced });
    prop::collection::vec(prop_oneof![24 => awaited, 1 => cancel], 0..60)
}

/// `a` does something, `b` is a fallback or a handler, and `c` undoes.
const TASKS: [&str; 10] = [
    "",
    "undo(@c 2 constant 0)",
    "undo(@c 2 constant 0)",
    "undo(@c 1 constant 0)",
    "undo(@c 2 constant 0) retry(2 constant 0)",
    "undo(@c 2 constant 0) fallback(@b)",
    "undo(@c 2 constant 0) fallback(@b) undo-fallback(@b 2 constant 0)",
    "undo(@c 2 constant 0) timeouts(total=1)",
    "undo(@c 2 constant 0) timeouts(attempt=1) retry(2 constant 0)",
    "undo(@c 2 constant 0) on-cancel(@b)",
];
const CHILDREN: [&str; 4] = ["", "", "timeouts(total=1)", "on-cancel(@b)"];
const WAITS: [&str; 5] = ["", "", "", "timeout=1", "on-cancel(@b)"];
const BLOCKS: [&str; 5] = ["", "", "undoes", "timeout=1", "undoes timeout=1"];

/// The workflow of the children.
const KID: &str = "define kid 1 on-cancel=tidy
 start: run @a undo(@c 2 constant 0) -> success=go failure=flo.Failed odd=go
 go: wait go -> success=flo.Completed
 tidy: block
 branch tidy-block of tidy single
  say: run @b
";

fn trees() -> impl Strategy<Value = ConfiguredTree> {
    trees_in(&[ROOT_BLOCK])
}

/// Trees in one of these own blocks.
pub(super) fn trees_in(
    root_blocks: &'static [&'static str],
) -> impl Strategy<Value = ConfiguredTree> {
    let settings = (
        select(&TASKS),
        select(&CHILDREN),
        select(&WAITS),
        select(&BLOCKS),
    );
    let settings = settings.prop_map(|(task, child, wait, blocks)| Settings {
        task,
        child,
        wait,
        blocks,
    });
    let list = || weighted_lists(&JOINS, 20);
    let handler = || prop_oneof![2 => Just(vec![Step::Acts]), 1 => list()];
    let settings = prop::collection::vec(settings, 1..12);
    let tree = (select(root_blocks), list(), handler(), handler(), settings);
    tree.prop_map(
        |(root_block, list, on_error, on_cancel, settings)| ConfiguredTree {
            root_block,
            list,
            on_error,
            on_cancel,
            settings,
        },
    )
}

/// What open runs wait for.
#[derive(Clone, Debug)]
enum Awaited {
    /// A worker for a task of this action.
    Worker(ActionName),
    /// The report on the task with this position among those that workers hold.
    Report(usize),
    Signal(RunId, Option<ScopePathText>),
    Decision(RunId, StepName, Option<ScopePathText>),
    Timer(TimerKey),
}

/// Runs that are being played.
pub(super) struct Trial {
    pub(super) player: Player,
    observed: Observations,
    reports_count: u64,
}

impl Trial {
    pub(super) fn begin(tree: &ConfiguredTree, budgets: Budgets) -> Self {
        let mut player = Player::with(budgets);
        play(&mut player, create(KID, "as written"));
        play(
            &mut player,
            create(&Text::of_configured_tree(tree), "as written"),
        );
        play(&mut player, start());
        Self {
            player,
            observed: Observations::default(),
            reports_count: 0,
        }
    }

    /// Plays runs to their end: at first with these inputs, then with successes.
    pub(super) fn play(&mut self, inputs: &[Input]) {
        for input in inputs {
            match input {
                Input::Awaited {
                    pick,
                    answer,
                    is_whole,
                } => {
                    let awaited = self.awaited();
                    if awaited.is_empty() {
                        return;
                    }
                    self.answer(pick.get(&awaited), *answer);
                    if *is_whole {
                        self.fire_continuations();
                    }
                }
                Input::Cancel { pick, is_forced } => self.cancel(pick, *is_forced),
            }
        }
        for _ in 0..INPUTS_MAX {
            let awaited = self.awaited();
            let Some(first) = awaited.first() else {
                return;
            };
            self.answer(first, Answer::Success);
        }
        panic!("the runs do not end");
    }

    fn open_runs(&self) -> Vec<RunId> {
        let runs = rows::<Runs>(&self.player.store, &()).into_iter();
        let open = runs.filter(|(_, run)| run.status.is_open());
        open.map(|(_, run)| run.id).collect()
    }

    /// Everything that open runs wait for, and that can come now.
    fn awaited(&self) -> Vec<Awaited> {
        let store = &self.player.store;
        let timers = self.due_timers().into_iter().map(Awaited::Timer);
        let mut awaited: Vec<Awaited> = timers.collect();
        let mut actions: Vec<ActionName> = rows::<Ready>(store, &())
            .into_iter()
            .map(|((_, action, ..), ())| action)
            .collect();
        actions.dedup();
        awaited.extend(actions.into_iter().map(Awaited::Worker));
        awaited.extend((0..self.player.tokens.len()).map(Awaited::Report));
        for run_id in self.open_runs() {
            let view = view::run(store, &Namespace::default_namespace(), &run_id);
            let view = view.expect("memory").expect("the run");
            for step in view.current_steps {
                let scope = ScopePathText::new(step.scope).ok();
                let run_id = run_id.clone();
                match step.waiting_for {
                    Some((WaitingFor::Signal, _)) => awaited.push(Awaited::Signal(run_id, scope)),
                    Some((WaitingFor::Approval, _)) => {
                        awaited.push(Awaited::Decision(run_id, step.step, scope));
                    }
                    _ => {}
                }
            }
        }
        awaited
    }

    /// The timers of runs that are due in the next entry.
    fn due_timers(&self) -> Vec<TimerKey> {
        let now_ms = entry(&self.player).stamp.now_ms;
        let timers = rows::<Timers>(&self.player.store, &()).into_iter();
        let due = timers.filter(|(timer, ())| is_of_runs(timer.kind) && timer.due_ms <= now_ms);
        due.map(|(timer, ())| timer).collect()
    }

    fn answer(&mut self, awaited: &Awaited, answer: Answer) {
        match awaited.clone() {
            Awaited::Worker(action) => {
                take(&mut self.player, &action);
                self.observed.note_compensations(&self.player);
            }
            Awaited::Report(position) => self.report(position, answer),
            Awaited::Signal(run_id, scope) => self.must_play(signal(run_id, scope)),
            Awaited::Decision(run_id, step, scope) => {
                self.must_play(decide(run_id, step, scope, answer == Answer::Success));
            }
            Awaited::Timer(timer) => self.must_play(Body::FireTimer(FireTimer { timer })),
        }
    }

    /// A worker reports on a task that it holds.
    fn report(&mut self, position: usize, answer: Answer) {
        let token = self.player.tokens.remove(position);
        self.reports_count += 1;
        let number = self.reports_count;
        let is_failure = matches!(answer, Answer::Failure | Answer::NonRetryable);
        let success = Success::of(&self.player, token, number).filter(|_| !is_failure);
        let output = Json::from_checked(number.to_string());
        let report = match answer {
            Answer::Success => samples::plain_completion(token, output),
            Answer::Custom => Body::CompleteTask(CompleteTask {
                token,
                outcome: OutcomeName::new("odd").expect("an outcome"),
                output,
                not_before: None,
                state_patch: None,
                usage: None,
            }),
            Answer::Failure => failure(token, FailKind::NoRetry),
            Answer::NonRetryable => failure(token, FailKind::NonRetryable),
        };
        let is_open = |player: &Player| {
            let record = read::<ActionRuns>(&player.store, &token.action_run);
            record.is_some_and(|record| record.status.is_open())
        };
        let was_open = is_open(&self.player);
        let reply = self.play_one(report);
        assert_eq!(reply.is_ok(), was_open, "{reply:?}");
        assert!(!is_open(&self.player), "a task ends once");
        if let (true, Some(success)) = (reply.is_ok(), success) {
            self.observed.add(success);
        }
    }

    fn cancel(&mut self, pick: &Index, is_forced: bool) {
        let open = self.open_runs();
        if open.is_empty() {
            return;
        }
        let run_id = pick.get(&open).clone();
        let run = self.player.number_of(&run_id);
        if is_forced {
            self.observed.add_forced(&self.player, run);
        }
        let reply = self.play_one(Body::CancelRun(CancelRun {
            run_id,
            reason: None,
            is_forced,
        }));
        assert!(reply.is_ok() || !is_forced, "{reply:?}");
    }

    fn fire_continuations(&mut self) {
        let is_deferred = |timer: &TimerKey| timer.kind == TimerKind::Continuation;
        while let Some(timer) = self.due_timers().into_iter().find(is_deferred) {
            self.must_play(Body::FireTimer(FireTimer { timer }));
        }
    }

    fn must_play(&mut self, body: Body) {
        let reply = self.play_one(body);
        assert!(reply.is_ok(), "{reply:?}");
    }

    /// Plays a command in its own entry, and notes what it leads to.
    pub(super) fn play_one(&mut self, body: Body) -> Result<Reply, Rejection> {
        let mut entry = entry(&self.player);
        entry.commands.push(command(body));
        let reply = play_entry(&mut self.player, &entry).replies.remove(0);
        self.observed.note_compensations(&self.player);
        reply
    }

    /// The names of everything that the runs have come across.
    pub(super) fn reached(&self) -> BTreeSet<String> {
        let store = &self.player.store;
        let mut reached: BTreeSet<String> = self
            .observed
            .owners()
            .map(|owner| first_word(&owner))
            .collect();
        for (run, record) in rows::<Runs>(store, &()) {
            if self.observed.is_forced(run) {
                reached.insert("Forced".to_owned());
            }
            if let RunStatus::Ended(status) = record.status {
                reached.insert(first_word(&status));
                if status == TerminalStatus::Completed && self.observed.has_undone(run) {
                    reached.insert("DroppedByCompleted".to_owned());
                }
            }
            for (_, record) in rows::<History>(store, &run) {
                reached.extend(record.events.iter().map(|event| match &event.kind {
                    EventKind::PhaseChanged { phase } => first_word(phase),
                    EventKind::StepTimeout { timeout } => first_word(timeout),
                    kind => first_word(kind),
                }));
            }
        }
        reached
    }

    /// Nothing is left of the runs but what is kept of ended ones.
    pub(super) fn check_nothing_is_open(&self) {
        let store = &self.player.store;
        assert_eq!(self.open_runs(), Vec::new());
        assert!(rows::<Activations>(store, &()).is_empty());
        assert!(rows::<Scopes>(store, &()).is_empty());
        assert!(rows::<PendingWorks>(store, &()).is_empty());
        assert!(rows::<SchemaChecks>(store, &()).is_empty());
        assert!(rows::<Ready>(store, &()).is_empty());
        let tasks = rows::<ActionRuns>(store, &());
        assert!(tasks.iter().all(|(_, task)| !task.status.is_open()));
        let timers = rows::<Timers>(store, &());
        assert!(
            !timers.iter().any(|(timer, ())| is_of_runs(timer.kind)),
            "{timers:?}"
        );
    }

    fn check_end(&self) {
        let store = &self.player.store;
        self.check_nothing_is_open();
        self.observed.check(&self.player);
        for (run, _) in rows::<Runs>(store, &()) {
            if !self.observed.is_forced(run) {
                let counts = counts(&self.player, run);
                let count = |name| counts.get(name).copied().unwrap_or_default();
                assert_eq!(count("opened"), count("closed"));
                assert_eq!(count("started"), count("completed") + count("cancelled"));
            }
        }
    }
}

/// The maximum number of inputs after the generated ones: more than any run of a tree needs.
const INPUTS_MAX: usize = 5_000;

/// Whether timers of this kind belong to runs and their tasks, and are deleted when these end.
fn is_of_runs(kind: TimerKind) -> bool {
    matches!(
        kind,
        TimerKind::StepWake
            | TimerKind::StepDeadline
            | TimerKind::StepTotal
            | TimerKind::StepAttempt
            | TimerKind::TaskReady
            | TimerKind::WaitExpiry
            | TimerKind::ReportExpiry
            | TimerKind::RunTimeout
            | TimerKind::RunStart
            | TimerKind::Continuation
    )
}

proptest! {
    #![proptest_config(config(64))]

    #[test]
    fn every_success_is_kept_or_undone_once_as_the_rules_say(
        tree in trees(), inputs in inputs(), budgets in budgets(),
    ) {
        let mut trial = Trial::begin(&tree, budgets);
        trial.play(&inputs);
        trial.check_end();
    }

    #[test]
    fn the_same_log_gives_the_same_bytes_whatever_is_undone(
        tree in trees(), inputs in inputs(), budgets in budgets(),
    ) {
        let mut trial = Trial::begin(&tree, budgets);
        trial.play(&inputs);
        let mut cold = Player::with(budgets);
        for entry in &trial.player.log {
            cold.reopen();
            cold.play(entry);
        }
        prop_assert!(cold.store == trial.player.store);
    }
}

/// A property holds for nothing if its trees reach nothing.
#[test]
fn random_trees_reach_every_way_to_undo() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    let strategy = (trees(), inputs());
    for _ in 0..100 {
        let tree = strategy.new_tree(&mut runner).expect("a tree");
        let (tree, inputs) = tree.current();
        let mut trial = Trial::begin(&tree, Budgets::default());
        trial.play(&inputs);
        reached.extend(trial.reached());
    }
    let missing: Vec<&str> = REACHED
        .split_whitespace()
        .filter(|name| !reached.contains(*name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

/// Owners of compensations, statuses, phases, timeouts and events.
const REACHED: &str = "Run Step Completed Failed TimedOut Cancelled Forced DroppedByCompleted \
    Cancelling Compensating OnError OnCancel Total Attempt \
    CompensationStarted CompensationCompleted CompensationFailed FallbackStarted StepRetry StepCancelled HandlerFailed";
