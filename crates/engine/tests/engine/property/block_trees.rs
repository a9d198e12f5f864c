//! A run of any tree of blocks ends as the tree says, and loses and doubles no token (W50–W53, W56).

use super::player::{Player, command, create};
use super::{budgets, config};
use crate::invariants::{self, read, rows};
use flotilla_engine::definition::{StepKind, TerminalStatus};
use flotilla_engine::ids::{
    Namespace, RunId, RunNumber, ScopeNumber, ScopePathText, SignalType, WorkflowName,
};
use flotilla_engine::json::Json;
use flotilla_engine::limits::RUN_STEPS_MAX;
use flotilla_engine::rows::{
    Definitions, EventKind, History, Items, IterationResults, Records, ResumableScopes, RunNames,
    RunStatus, Runs, ScopeStep, States, StepResults, TimerKey, TimerKind, Timers,
};
use flotilla_engine::view::{self, WaitingFor};
use flotilla_engine::{
    Body, DecideApproval, Entry, FireTimer, Rejection, Reply, SignalRun, Stamp, StartRun,
    StepSelector, VersionChoice,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::slice;

/// A step of a generated workflow.
#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Waits for a signal; ends with `success`.
    Waits,
    /// Asks for a decision; ends with `approved`.
    Asks,
    /// Ends immediately with `target_not_found`.
    Fails,
    /// Is skipped.
    Skips,
    /// Writes a key that no other step writes to the state, and 1 to `n`, which joins add up.
    Sets,
    /// Appends a record to the stream `log`.
    Emits,
    /// Is a switch without a match, and leads to the next step.
    LeadsOn,
    /// Is a switch that ends the block with `success`.
    Ends,
    /// Is a switch that ends the block with `failure`, for which a block is tried again.
    Breaks,
    /// Ends as its branches do, by the join.
    Fans(&'static str, Vec<Vec<Step>>),
    /// Ends as its block does, which is tried twice.
    Nests(Vec<Step>),
    /// Executes its block for two items, that many at the same time.
    Loops(u32, Vec<Step>),
}

/// The steps of a list.
pub(super) type List = Vec<Step>;

/// Lists of up to three steps, with up to three levels of branches.
pub(super) fn lists(joins: &'static [&'static str]) -> impl Strategy<Value = List> {
    let leaf = prop_oneof![
        6 => Just(Step::Waits),
        3 => Just(Step::Asks),
        2 => Just(Step::Fails),
        1 => Just(Step::Skips),
        2 => Just(Step::Sets),
        1 => Just(Step::Emits),
        1 => Just(Step::LeadsOn),
        1 => Just(Step::Ends),
        1 => Just(Step::Breaks),
    ];
    let step = leaf.prop_recursive(3, 40, 3, move |inner| {
        let block = prop::collection::vec(inner, 1..3);
        let branches = prop::collection::vec(block.clone(), 1..4);
        let fans = (prop::sample::select(joins), branches);
        prop_oneof![
            3 => fans.prop_map(|(join, branches)| Step::Fans(join, branches)),
            1 => block.clone().prop_map(Step::Nests),
            1 => (1..3_u32, block).prop_map(|(concurrency, list)| Step::Loops(concurrency, list)),
        ]
    });
    prop::collection::vec(step, 1..4)
}

/// What becomes of a list: how many steps of each kind are left.
#[derive(Default)]
pub(super) struct Expected {
    waits_count: usize,
    /// How many of these wait for a decision.
    asks_count: usize,
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
                Step::Asks => {
                    self.waits_count += 1;
                    self.asks_count += 1;
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
            // Its results are dropped, its signals are given back, and its decisions are made again.
            self.waits_count += attempt.asks_count;
            self.asks_count += attempt.asks_count;
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
            Step::Loops(concurrency, list) => {
                let before = written.or(seen);
                let first = self::written(list, before);
                let sum = |one: u64| before.unwrap_or(0) + one;
                // Each iteration sees what the one before it wrote, or what stood there before the step.
                let seen = match concurrency {
                    1 => first.map(sum).or(before),
                    _ => before,
                };
                let second = self::written(list, seen);
                let of_both = first.zip(second).map(|(first, second)| first + second);
                written = of_both.map(sum).or(written);
            }
            Step::Waits
            | Step::Asks
            | Step::Fails
            | Step::Breaks
            | Step::Skips
            | Step::LeadsOn
            | Step::Emits => {}
        }
    }
    written
}

/// A step that is skipped: the workflow is called `tree`.
const SKIPPED: &str = "wait go skip=$.flo.workflow==tree";

/// The text of a workflow, as the scripts write it.
pub(super) struct Text {
    own: String,
    blocks: String,
    names_count: usize,
    /// How many steps that are skipped come before each step.
    skipped_count: usize,
}

impl Text {
    pub(super) fn of(list: &List) -> String {
        Self::of_version(list, 1, 0)
    }

    /// The text of another version, in which steps that are skipped come before each step.
    pub(super) fn of_version(list: &List, version: usize, skipped_count: usize) -> String {
        let mut text = Self {
            own: format!("define tree {version} list\n"),
            blocks: String::new(),
            names_count: 0,
            skipped_count,
        };
        text.own = text.block(list, text.own.clone());
        text.own + &text.blocks
    }

    /// Adds the lines of a list to `lines`, and the blocks that its steps open behind all others.
    fn block(&mut self, list: &List, mut lines: String) -> String {
        for step in list {
            self.names_count += 1;
            let name = format!("s{}", self.names_count);
            let set = format!("set set={name}=1;n=1");
            let what = match step {
                Step::Waits => "wait go",
                Step::Asks => "approval",
                Step::Fails => "run @unknown",
                Step::Sets => &set,
                Step::Emits => "emit log payload=1",
                Step::Skips => SKIPPED,
                Step::LeadsOn => "switch $.flo.workflow!=tree?flo.Failed",
                Step::Ends => "switch $.flo.workflow==tree?flo.Completed",
                Step::Breaks => "switch $.flo.workflow==tree?flo.Failed",
                Step::Fans(join, _) => &format!("{join} merge=n=sum"),
                Step::Nests(_) => "block retry(2 constant 0)",
                Step::Loops(concurrency, _) => {
                    &format!("foreach items=[1,2] concurrency={concurrency} merge=n=sum")
                }
            };
            for number in 0..self.skipped_count {
                writeln!(lines, " {name}x{number}: {SKIPPED}").expect("a string takes any text");
            }
            writeln!(lines, " {name}: {what}").expect("a string takes any text");
            let branches = match step {
                Step::Fans(_, branches) => &branches[..],
                Step::Nests(list) | Step::Loops(_, list) => slice::from_ref(list),
                _ => continue,
            };
            for (position, branch) in branches.iter().enumerate() {
                let head = format!(" branch {name}b{position} of {name} list\n");
                let inner = self.block(branch, head);
                self.blocks.push_str(&inner);
            }
        }
        lines
    }
}

/// Plays a command in an entry of a later time: timers that are due immediately are due then.
pub(super) fn play(player: &mut Player, body: Body) {
    let reply = try_to_play(player, body);
    assert!(reply.is_ok(), "{reply:?}");
}

/// Like [`play`], for a command that may be rejected.
pub(super) fn try_to_play(player: &mut Player, body: Body) -> Result<Reply, Rejection> {
    let stamp = player.stamp();
    let entry = Entry {
        stamp: Stamp {
            now_ms: 1_000 + player.raft_index,
            ..stamp
        },
        commands: vec![command(body)],
        offers: Vec::new(),
    };
    let mut applied = player.play(&entry);
    invariants::check(&player.store);
    applied.replies.remove(0)
}

/// A start of a run that is called `it`.
pub(super) fn start() -> Body {
    Body::StartRun(start_as("it"))
}

/// A start of a run with this id.
pub(super) fn start_as(run_id: &str) -> StartRun {
    StartRun {
        workflow: WorkflowName::new("tree").expect("a name"),
        version: VersionChoice::Latest,
        input: Json::null(),
        input_checked_for: None,
        idempotency_key: None,
        run_id: Some(RunId::new(run_id).expect("an id")),
        trace: None,
        start_time: None,
        metadata: None,
        target: None,
        locks: None,
    }
}

fn signal() -> Body {
    Body::SignalRun(SignalRun {
        run_id: RunId::new("it").expect("an id"),
        signal_type: SignalType::new("go").expect("a type"),
        payload: Json::null(),
        scope: None,
        signal_id: None,
    })
}

/// Does the work that was deferred, however little an entry may do.
pub(super) fn go_on(player: &mut Player, run: RunNumber) {
    let is_continued = |player: &Player| {
        let run = read::<Runs>(&player.store, &run).expect("the run");
        run.continuation.is_some()
    };
    while is_continued(player) {
        let timers = rows::<Timers>(&player.store, &());
        let is_own =
            |timer: &TimerKey| timer.kind == TimerKind::Continuation && timer.subject == run.0;
        let mut own = timers.into_iter().filter(|(timer, ())| is_own(timer));
        let (timer, ()) = own.next().expect("a continued run has a timer");
        play(player, Body::FireTimer(FireTimer { timer }));
    }
}

/// How many events of each kind the run's history has.
fn counts(player: &Player, run: RunNumber) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    let record = read::<Runs>(&player.store, &run).expect("the run");
    let definition =
        read::<Definitions>(&player.store, &record.definition).expect("its definition");
    let is_loop = |down: &ScopeStep| {
        let opener = definition.definition.step(down.step);
        matches!(opener.kind, StepKind::ForEach(_))
    };
    for (_, record) in rows::<History>(&player.store, &run) {
        for event in record.events {
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
    }
    counts
}

/// Answers a step that waits: in turn the last one, by its scope, and the first one.
pub(super) fn answer(player: &mut Player, run: RunNumber) {
    let Body::SignalRun(mut signal) = signal() else {
        panic!("it is a signal");
    };
    let run = read::<Runs>(&player.store, &run).expect("the run");
    signal.run_id = run.id.clone();
    let namespace = Namespace::default_namespace();
    let view = view::run(&player.store, &namespace, &signal.run_id).expect("memory");
    let steps = view.expect("the run").current_steps.into_iter();
    let mut waiting = steps.filter_map(|step| match step.waiting_for {
        Some((kind @ (WaitingFor::Signal | WaitingFor::Approval), _)) => Some((kind, step)),
        _ => None,
    });
    let is_last = run.left_count.is_multiple_of(2);
    let picked = match is_last {
        true => waiting.last(),
        false => waiting.next(),
    };
    let (kind, step) = picked.expect("a step waits");
    let scope = ScopePathText::new(step.scope).ok();
    if kind == WaitingFor::Signal {
        signal.scope = scope.filter(|_| is_last);
        return play(player, Body::SignalRun(signal));
    }
    let decision = DecideApproval {
        run_id: signal.run_id,
        selector: StepSelector {
            step: Some(step.step),
            scope,
            visit: None,
        },
        is_approved: true,
        comment: None,
    };
    play(player, Body::DecideApproval(decision));
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
        let Body::SignalRun(signal) = signal() else {
            panic!("it is a signal");
        };
        let run_id = child;
        play(&mut player, Body::SignalRun(SignalRun { run_id, ..signal }));
        let status = read::<Runs>(&player.store, &parent)
            .expect("the parent")
            .status;
        assert_eq!(status, RunStatus::Waiting);
    }
}

/// How often the steps of a tree wait at most.
pub(super) fn waits_count(list: &List) -> usize {
    let of_step = |step: &Step| match step {
        Step::Waits | Step::Asks => 1,
        Step::Fails
        | Step::Skips
        | Step::Sets
        | Step::Emits
        | Step::LeadsOn
        | Step::Ends
        | Step::Breaks => 0,
        Step::Fans(_, branches) => branches.iter().map(waits_count).sum(),
        Step::Nests(list) => 2 * waits_count(list),
        Step::Loops(_, list) => 2 * waits_count(list),
    };
    list.iter().map(of_step).sum()
}

/// Every kind of join.
const JOINS: [&str; 7] = [
    "parallel",
    "parallel cancel",
    "parallel join=any",
    "parallel join=first",
    "parallel join=1",
    "parallel join=1 cancel",
    "parallel",
];

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn every_scope_of_a_tree_ends_once_whatever_its_joins(list in lists(&JOINS), budgets in budgets()) {
        let mut player = Player::with(budgets);
        play(&mut player, create(&Text::of(&list), "as written"));
        play(&mut player, start());
        let run = rows::<Runs>(&player.store, &()).last().expect("a run").0;
        go_on(&mut player, run);
        let is_open = |player: &Player| {
            read::<Runs>(&player.store, &run).expect("the run").status.is_open()
        };
        let mut signals_count = 0;
        while is_open(&player) {
            prop_assert!(signals_count < waits_count(&list), "more waits than there are");
            signals_count += 1;
            answer(&mut player, run);
            go_on(&mut player, run);
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
        play(&mut player, create(&Text::of(&list), "as written"));
        play(&mut player, start());
        let run = rows::<Runs>(&player.store, &()).last().expect("a run").0;
        go_on(&mut player, run);
        for _ in 0..expected.waits_count {
            let status = read::<Runs>(&player.store, &run).expect("the run").status;
            prop_assert_eq!(status, RunStatus::Waiting, "too few steps wait");
            answer(&mut player, run);
            go_on(&mut player, run);
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
