//! A run of any tree of blocks ends as the tree says, and loses and doubles no token (W50–W53, W56).

use super::player::{Player, command, create};
use super::trees::{JOINS, List, Step, Text, lists, waits_count};
use super::{budgets, config, tree_tasks};
use crate::invariants::{self, read, rows};
use flotilla_engine::definition::{StepKind, TerminalStatus};
use flotilla_engine::ids::{
    Namespace, RunId, RunNumber, ScopeNumber, ScopePathText, SignalType, StepName, WorkflowName,
};
use flotilla_engine::json::Json;
use flotilla_engine::limits::RUN_STEPS_MAX;
use flotilla_engine::rows::{
    Definitions, EventKind, History, Items, IterationResults, Records, ResumableScopes, RunNames,
    RunRecord, RunStatus, Runs, ScopeStep, States, StepResults, TimerKind, Timers,
};
use flotilla_engine::view::{self, WaitingFor};
use flotilla_engine::{
    Applied, Body, DecideApproval, Entry, FireTimer, Rejection, Reply, SignalRun, Stamp, StartRun,
    StepSelector,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// What becomes of a list: how many steps of each kind are left.
#[derive(Default)]
pub(super) struct Expected {
    waits_count: usize,
    /// How many of these waits the next attempt at the block repeats: approvals, child runs, tasks and delays.
    renewed_count: usize,
    left_count: usize,
    /// How many of the steps that are left keep their results.
    results_count: usize,
    scopes_count: usize,
    joined_count: usize,
    sets_count: usize,
    emits_count: usize,
    /// How many of the emits are in the history.
    emitted_count: usize,
    /// Whether the steps belong to an iteration, of which the history has only failures.
    is_iteration: bool,
}

/// How a list ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ListEnd {
    Success,
    /// A block around it is tried again.
    Retryable,
    Failure,
}

impl Expected {
    /// Counts the steps of a list that are reached.
    pub(super) fn add(&mut self, list: &[Step]) -> ListEnd {
        for step in list {
            let count = usize::from(!self.is_iteration);
            self.left_count += count;
            self.results_count += count;
            let end = match step {
                Step::Asks | Step::Calls | Step::Delays => {
                    self.waits_count += 1;
                    self.renewed_count += 1;
                    ListEnd::Success
                }
                Step::Acts => {
                    // A worker takes the task, and reports on it.
                    self.waits_count += 2;
                    self.renewed_count += 2;
                    ListEnd::Success
                }
                Step::Waits => {
                    self.waits_count += 1;
                    ListEnd::Success
                }
                Step::Skips | Step::LeadsOn => ListEnd::Success,
                Step::Emits => {
                    self.emits_count += 1;
                    self.emitted_count += count;
                    ListEnd::Success
                }
                Step::Sets => {
                    self.sets_count += 1;
                    ListEnd::Success
                }
                Step::Ends => return ListEnd::Success,
                Step::Breaks => ListEnd::Retryable,
                Step::Fails => ListEnd::Failure,
                Step::Fans(_, branches) => {
                    self.scopes_count += count * branches.len();
                    self.joined_count += count * branches.len();
                    // All branches run to their end. The first one that fails is the reason.
                    let ends: Vec<ListEnd> =
                        branches.iter().map(|branch| self.add(branch)).collect();
                    let failed = ends.into_iter().find(|end| *end != ListEnd::Success);
                    failed.unwrap_or(ListEnd::Success)
                }
                Step::Nests(list) => self.add_block(list),
                Step::Loops(_, list) => self.add_loop(list),
                Step::Tolerates(list) => {
                    let sets_count = self.sets_count;
                    if self.add_loop(list) != ListEnd::Success {
                        // The writes of failed iterations are dropped.
                        self.sets_count = sets_count;
                    }
                    ListEnd::Success
                }
            };
            if end != ListEnd::Success {
                return end;
            }
        }
        ListEnd::Success
    }

    fn add_loop(&mut self, list: &[Step]) -> ListEnd {
        let is_iteration = std::mem::replace(&mut self.is_iteration, true);
        let first = self.add(list);
        // The second iteration writes the same keys.
        let sets_count = self.sets_count;
        let second = self.add(list);
        self.sets_count = sets_count;
        self.is_iteration = is_iteration;
        match (first, second) {
            (ListEnd::Success, end) | (end, _) => end,
        }
    }

    fn add_block(&mut self, list: &[Step]) -> ListEnd {
        let mut attempt = Self {
            is_iteration: self.is_iteration,
            ..Self::default()
        };
        let end = attempt.add(list);
        if end == ListEnd::Retryable {
            // The next attempt drops the results and reuses the signals. Approvals, child runs, tasks and delays start again.
            self.waits_count += attempt.renewed_count;
            self.renewed_count += attempt.renewed_count;
            self.left_count += attempt.left_count;
            self.scopes_count += usize::from(!self.is_iteration) + attempt.scopes_count;
            self.joined_count += attempt.joined_count;
            self.emits_count += attempt.emits_count;
            self.emitted_count += attempt.emitted_count;
        }
        self.scopes_count += usize::from(!self.is_iteration);
        self.add(list)
    }
}

/// What a list writes to `n`, if all its branches succeed; `seen` is what stands there before.
fn written(list: &[Step], seen: Option<u64>) -> Option<u64> {
    let mut written = None;
    for step in list {
        match step {
            Step::Sets => written = Some(1),
            Step::Ends => break,
            Step::Fans(_, branches) => {
                let before = written.or(seen);
                let of_branches = branches
                    .iter()
                    .filter_map(|branch| self::written(branch, before));
                let sum = of_branches.reduce(|one, other| one + other);
                written = sum.map(|sum| before.unwrap_or(0) + sum).or(written);
            }
            Step::Nests(list) => written = self::written(list, written.or(seen)).or(written),
            Step::Loops(_, list) | Step::Tolerates(list) => {
                if Expected::default().add(list) != ListEnd::Success {
                    continue;
                }
                let before = written.or(seen);
                let first = self::written(list, before);
                let sum = |one: u64| before.unwrap_or(0) + one;
                // Each iteration sees what the one before it wrote, or what stood there before the step.
                let seen = match step {
                    Step::Loops(1, _) => first.map(sum).or(before),
                    _ => before,
                };
                let second = self::written(list, seen);
                let of_both = first.zip(second).map(|(first, second)| first + second);
                written = of_both.map(sum).or(written);
            }
            Step::Waits
            | Step::Asks
            | Step::Calls
            | Step::Acts
            | Step::Delays
            | Step::Fails
            | Step::Breaks
            | Step::Skips
            | Step::LeadsOn
            | Step::Emits => {}
        }
    }
    written
}

/// Plays a command in an entry of a later time: timers that are due immediately are due then.
pub(super) fn play(player: &mut Player, body: Body) {
    let reply = try_to_play(player, body);
    assert!(reply.is_ok(), "{reply:?}");
}

/// Like [`play`], for a command that may be rejected.
pub(super) fn try_to_play(player: &mut Player, body: Body) -> Result<Reply, Rejection> {
    let mut entry = entry(player);
    entry.commands.push(command(body));
    play_entry(player, &entry).replies.remove(0)
}

/// An empty entry of a later time.
pub(super) fn entry(player: &Player) -> Entry {
    Entry {
        stamp: Stamp {
            now_ms: 1_000 + player.raft_index + player.stamp().now_ms,
            ..player.stamp()
        },
        commands: Vec::new(),
        offers: Vec::new(),
    }
}

/// Plays an entry, and checks what must always hold.
pub(super) fn play_entry(player: &mut Player, entry: &Entry) -> Applied {
    let applied = player.play(entry);
    invariants::check(&player.store);
    applied
}

/// Starts a run of a tree.
pub(super) fn begin(player: &mut Player, list: &List) -> RunNumber {
    begin_with(player, &Text::of(list))
}

/// Starts a run of a workflow that has this text.
pub(super) fn begin_with(player: &mut Player, text: &str) -> RunNumber {
    play(player, create(KID, "as written"));
    play(player, create(text, "as written"));
    play(player, start());
    rows::<RunNames>(&player.store, &())[0].1
}

/// The workflow of the children.
const KID: &str = "define kid 1 list\n go: wait go\n";

/// A start of a run that is called `it`.
pub(super) fn start() -> Body {
    Body::StartRun(start_as("it"))
}

/// A start of a run with this id.
pub(super) fn start_as(run_id: &str) -> StartRun {
    StartRun {
        run_id: Some(RunId::new(run_id).expect("an id")),
        ..StartRun::new(WorkflowName::new("tree").expect("a name"), Json::null())
    }
}

pub(super) fn signal(run_id: RunId, scope: Option<ScopePathText>) -> Body {
    Body::SignalRun(SignalRun {
        run_id,
        signal_type: SignalType::new("go").expect("a type"),
        payload: Json::null(),
        scope,
        signal_id: None,
    })
}

/// Fires continuation timers until no run has deferred work, whatever the budget of an entry.
pub(super) fn go_on(player: &mut Player) {
    let deferred = |player: &Player| {
        let mut timers = rows::<Timers>(&player.store, &()).into_iter();
        timers.find(|(timer, ())| timer.kind == TimerKind::Continuation)
    };
    while let Some((timer, ())) = deferred(player) {
        play(player, Body::FireTimer(FireTimer { timer }));
    }
}

/// How many events of each kind the run's history has.
pub(super) fn counts(player: &Player, run: RunNumber) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    let record = read::<Runs>(&player.store, &run).expect("the run");
    let definition = |number| {
        let found = read::<Definitions>(&player.store, number);
        found.expect("its definition").definition
    };
    let former = record.resumption.former_definitions.iter();
    let former = former.map(|former| (former.last_event, definition(&former.definition)));
    let current = (u64::MAX, definition(&record.definition));
    // Each with the last event that the run has noted with it.
    let definitions: Vec<_> = former.chain([current]).collect();
    let histories = rows::<History>(&player.store, &run).into_iter();
    let events = histories.flat_map(|(_, record)| record.events);
    for (seq, event) in (1..).zip(events) {
        let mut later = definitions.iter().filter(|(last, _)| seq <= *last);
        let (_, definition) = later.next().expect("the current one is the last");
        let is_loop =
            |down: &ScopeStep| matches!(definition.step(down.step).kind, StepKind::ForEach(_));
        if event.scope.path.0.iter().any(is_loop) {
            continue;
        }
        let name = match event.kind {
            EventKind::StepStarted => "started",
            EventKind::StepCompleted { .. } => "completed",
            EventKind::StepCancelled => "cancelled",
            EventKind::ScopeStarted => "opened",
            EventKind::ScopeEnded { .. } => "closed",
            EventKind::BranchJoined { .. } => "joined",
            EventKind::RecordEmitted { .. } => "emitted",
            _ => continue,
        };
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Answers a step that waits: in turn the last one, by its scope, and the first one.
pub(super) fn answer(player: &mut Player, run: RunNumber) {
    let number = run;
    let run = read::<Runs>(&player.store, &run).expect("the run");
    let namespace = Namespace::default_namespace();
    let view = view::run(&player.store, &namespace, &run.id).expect("memory");
    let steps = view.expect("the run").current_steps.into_iter();
    let mut waiting = steps.filter_map(|step| {
        let (kind, _) = step.waiting_for?;
        let is_own = matches!(
            kind,
            WaitingFor::Signal
                | WaitingFor::Approval
                | WaitingFor::Child
                | WaitingFor::Timer
                | WaitingFor::Action
        );
        is_own.then_some((kind, step))
    });
    let is_last = run.left_count.is_multiple_of(2);
    let picked = match is_last {
        true => waiting.last(),
        false => waiting.next(),
    };
    let Some((kind, step)) = picked else {
        // What was cancelled ends when its worker reports.
        return tree_tasks::work(player, is_last);
    };
    let scope = ScopePathText::new(step.scope).ok();
    match kind {
        WaitingFor::Signal => {
            let scope = scope.filter(|_| is_last);
            return play(player, signal(run.id, scope));
        }
        WaitingFor::Action => return tree_tasks::work(player, is_last),
        WaitingFor::Child => {
            let runs = rows::<Runs>(&player.store, &()).into_iter();
            let is_of_run = |of: &RunRecord| of.parent.is_some_and(|parent| parent.run == number);
            let mut open = runs.filter(|(_, of)| is_of_run(of) && of.status.is_open());
            let child = if is_last {
                open.next_back()
            } else {
                open.next()
            };
            let (_, child) = child.expect("an open child");
            return play(player, signal(child.id, None));
        }
        WaitingFor::Timer => {
            let timers = rows::<Timers>(&player.store, &()).into_iter();
            let mut own = timers.filter(|(timer, ())| {
                timer.kind == TimerKind::StepWake && timer.subject == number.0
            });
            let timer = if is_last { own.next_back() } else { own.next() };
            let (timer, ()) = timer.expect("a delay has a timer");
            return play(player, Body::FireTimer(FireTimer { timer }));
        }
        _ => {}
    }
    play(player, decide(run.id, step.step, scope, true));
}

/// A decision about a step of a run, by its scope.
pub(super) fn decide(
    run_id: RunId,
    step: StepName,
    scope: Option<ScopePathText>,
    is_approved: bool,
) -> Body {
    Body::DecideApproval(DecideApproval {
        run_id,
        selector: StepSelector {
            step: Some(step),
            scope,
            visit: None,
        },
        is_approved,
        comment: None,
    })
}

/// Its children end at a custom terminal out of a branch, so their branches join nothing (W16).
#[test]
fn a_run_whose_children_wait_in_branches_goes_on() {
    let mut player = Player::new();
    let kid = "define kid 1\n terminal Done completed\n start: parallel -> success=flo.Completed\n \
               branch b of start graph\n b: wait go -> success=Done";
    play(&mut player, create(kid, "as written"));
    let parent = "define tree 1\n start: run @workflow/kid -> success=start failure=flo.Failed";
    play(&mut player, create(parent, "as written"));
    play(&mut player, start());
    let parent = rows::<RunNames>(&player.store, &())[0].1;
    for _ in 0..2 * RUN_STEPS_MAX {
        let child = rows::<Runs>(&player.store, &())
            .last()
            .expect("a child")
            .1
            .id
            .clone();
        play(&mut player, signal(child, None));
        let status = read::<Runs>(&player.store, &parent)
            .expect("the parent")
            .status;
        assert_eq!(status, RunStatus::Waiting);
    }
}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn every_scope_of_a_tree_ends_once_whatever_its_joins(list in lists(&JOINS), budgets in budgets()) {
        let mut player = Player::with(budgets);
        let run = begin(&mut player, &list);
        go_on(&mut player);
        let is_open = |player: &Player| {
            read::<Runs>(&player.store, &run).expect("the run").status.is_open()
        };
        let mut signals_count = 0;
        while is_open(&player) {
            prop_assert!(signals_count < waits_count(&list), "more waits than there are");
            signals_count += 1;
            answer(&mut player, run);
            go_on(&mut player);
        }
        let counts = counts(&player, run);
        let count = |name| counts.get(name).copied().unwrap_or_default();
        prop_assert_eq!(count("opened"), count("closed"));
        prop_assert_eq!(count("started"), count("completed") + count("cancelled"));
        prop_assert!(count("joined") <= count("closed"));
        prop_assert!(count("emitted") <= rows::<Records>(&player.store, &()).len());
        let status = read::<Runs>(&player.store, &run).expect("the run").status;
        if status == RunStatus::Ended(TerminalStatus::Completed) {
            prop_assert!(rows::<Items>(&player.store, &run).is_empty());
            prop_assert!(rows::<IterationResults>(&player.store, &run).is_empty());
            prop_assert!(rows::<ResumableScopes>(&player.store, &run).is_empty());
        }
    }

    #[test]
    fn every_tree_of_blocks_ends_as_it_says(list in lists(&["parallel"]), budgets in budgets()) {
        let mut expected = Expected::default();
        let is_good = expected.add(&list) == ListEnd::Success;
        let mut player = Player::with(budgets);
        let run = begin(&mut player, &list);
        go_on(&mut player);
        for _ in 0..expected.waits_count {
            let status = read::<Runs>(&player.store, &run).expect("the run").status;
            prop_assert!(status.is_open(), "too few steps wait");
            answer(&mut player, run);
            go_on(&mut player);
        }
        let record = read::<Runs>(&player.store, &run).expect("the run");
        let end = if is_good { TerminalStatus::Completed } else { TerminalStatus::Failed };
        prop_assert_eq!(record.status, RunStatus::Ended(end));
        let results_count = rows::<StepResults>(&player.store, &run).len();
        // A resume needs those of iterations that did not succeed.
        prop_assert!(results_count == expected.results_count || (!is_good && results_count > expected.results_count));
        if is_good {
            // Every branch succeeded and keeps what it wrote.
            let state = read::<States>(&player.store, &(run, ScopeNumber::ROOT));
            let text = state.as_ref().map_or("{}", |state| state.object.as_str());
            let n = written(&list, None);
            let keys_count = expected.sets_count + usize::from(n.is_some());
            prop_assert_eq!(text.matches(':').count(), keys_count);
            let n_written = n.map_or(String::new(), |n| format!("\"n\":{n}"));
            let is_written = text.split(['{', '}', ',']).any(|field| field == n_written);
            prop_assert!(is_written, "expected {} in {}", n_written, text);
        }
        let counts = counts(&player, run);
        let count = |name| counts.get(name).copied().unwrap_or_default();
        prop_assert_eq!((count("started"), count("completed")), (expected.left_count, expected.left_count));
        prop_assert_eq!(count("emitted"), expected.emitted_count);
        prop_assert_eq!(rows::<Records>(&player.store, &()).len(), expected.emits_count);
        prop_assert_eq!((count("opened"), count("closed")), (expected.scopes_count, expected.scopes_count));
        prop_assert_eq!(count("joined"), expected.joined_count);
    }
}
