//! Random moves: mostly sensible, some nonsense.

use super::data::{self, DataIntent};
use super::plan_moves;
use flotilla_engine::ids::RunId;
use flotilla_engine::json::Json;
use flotilla_engine::{AddInfo, AddTaskInfo, Body, TaskToken};
use proptest::prelude::*;

/// What one entry is made of.
#[derive(Clone, Debug)]
pub(super) struct Move {
    pub(super) forward_ms: u64,
    pub(super) offers: Vec<OfferPlan>,
    pub(super) commands: Vec<(Intent, Option<u8>)>,
}

/// An open poll of one of the workers.
#[derive(Clone, Debug)]
pub(super) struct OfferPlan {
    pub(super) worker: u8,
    pub(super) slots: u32,
    pub(super) labels: u8,
}

/// A command whose numbers pick from what there is: runs, tokens, timers.
#[derive(Clone, Debug)]
pub(super) enum Intent {
    Create {
        version: u8,
        is_other: bool,
    },
    EnableWorkflow {
        workflow: u8,
        is_enabled: bool,
    },
    Start {
        workflow: u8,
        key: Option<u8>,
        id: Option<u8>,
        is_traced: bool,
    },
    Signal {
        run: u8,
        kind: u8,
        id: Option<u8>,
    },
    Resume {
        run: u8,
    },
    Retry {
        run: u8,
        workflow: u8,
        /// Which run that has ended, and which of its steps, is retried instead.
        from: Option<u8>,
    },
    Cancel {
        run: u8,
    },
    /// An info entry, of a caller or of a task.
    Info {
        run: u8,
        token: Option<u8>,
    },
    Decide {
        pick: u8,
        is_valid: bool,
        is_stale: bool,
    },
    Register {
        action: u8,
        retries: u32,
    },
    CancelActionRun {
        pick: u8,
    },
    DeleteAction {
        action: u8,
    },
    DeleteWorkflow {
        workflow: u8,
    },
    EnableAction {
        action: u8,
        is_enabled: bool,
    },
    Invoke {
        action: u8,
        priority: u8,
        delay_ms: u64,
        labels: u8,
        key: Option<u8>,
    },
    Assign {
        action: u8,
    },
    Complete {
        token: u8,
        outcome: u8,
    },
    Fail {
        token: u8,
        kind: u8,
        code: Option<u8>,
    },
    Accept {
        token: u8,
    },
    Report {
        token: u8,
        outcome: u8,
    },
    Invalidate {
        is_named: bool,
        workflow: Option<u8>,
    },
    ResetPlan {
        executor: Option<u8>,
    },
    Touch {
        token: u8,
        extend_ms: u64,
    },
    Forge {
        action_run: u8,
    },
    Worker {
        worker: u8,
        incarnation: u8,
    },
    Heartbeat {
        worker: u8,
        incarnation: u8,
    },
    Drain {
        worker: u8,
    },
    Deregister {
        worker: u8,
        incarnation: u8,
    },
    Release {
        worker: u8,
        incarnation: u8,
        is_lost: bool,
    },
    Fire {
        timer: u8,
    },
    FireGone {
        run: u8,
        due_ms: u64,
    },
    BeginTerm {
        term: u8,
    },
    Sweep,
    SweepRuns,
    Requeue {
        action: u8,
        dead_letter: Option<u8>,
    },
    Purge {
        action: u8,
        dead_letter: Option<u8>,
    },
    Schedule {
        pick: u8,
        forward_ms: u64,
        is_wrong: bool,
    },
    CreateScheduled {
        is_paused: bool,
        catchup_ms: u64,
    },
    Data {
        is_elsewhere: bool,
        intent: DataIntent,
    },
}

/// A history of entries: of runs and tasks, or of what callers keep.
pub(super) fn histories() -> impl Strategy<Value = Vec<Move>> {
    prop_oneof![
        3 => prop::collection::vec(moves(intents().boxed()), 1..50),
        3 => prop::collection::vec(moves(plan_moves::intents().boxed()), 1..50),
        4 => prop::collection::vec(moves(on_data().boxed()), 1..50),
    ]
}

/// Histories of single commands, each with or without offers.
pub(super) fn single_histories() -> impl Strategy<Value = Vec<Move>> {
    prop_oneof![
        3 => single_run_histories(),
        2 => single_data_histories(),
    ]
}

/// Histories of single commands on runs and tasks, of workflows of all kinds or of those with plans.
pub(super) fn single_run_histories() -> impl Strategy<Value = Vec<Move>> {
    prop_oneof![
        singles(intents().boxed()),
        singles(plan_moves::intents().boxed()),
    ]
}

/// Histories of single commands on what callers keep.
pub(super) fn single_data_histories() -> impl Strategy<Value = Vec<Move>> {
    singles(on_data().boxed())
}

fn singles(intents: BoxedStrategy<Intent>) -> impl Strategy<Value = Vec<Move>> {
    prop::collection::vec(moves(intents).prop_map(only_first), 1..60)
}

fn only_first(mut one: Move) -> Move {
    one.commands.truncate(1);
    one
}

fn moves(intents: BoxedStrategy<Intent>) -> impl Strategy<Value = Move> {
    let forward_ms = prop_oneof![4 => 0..60_u64, 3 => 60..1_500_u64, 1 => 10_000..100_000_u64];
    let request = prop::option::weighted(0.1, 0..6_u8);
    (
        forward_ms,
        prop::collection::vec(offers(), 0..3),
        prop::collection::vec((intents, request), 1..5),
    )
        .prop_map(|(forward_ms, offers, commands)| Move {
            forward_ms,
            offers,
            commands,
        })
}

fn offers() -> impl Strategy<Value = OfferPlan> {
    (0..4_u8, 1..4_u32, 0..3_u8).prop_map(|(worker, slots, labels)| OfferPlan {
        worker,
        slots,
        labels,
    })
}

fn intents() -> impl Strategy<Value = Intent> {
    prop_oneof![
        12 => on_runs(),
        20 => on_tasks(),
        4 => on_workers(),
        3 => on_registries(),
        10 => any::<u8>().prop_map(|timer| Intent::Fire { timer }),
        3 => on_schedules(),
    ]
}

fn on_data() -> impl Strategy<Value = Intent> {
    prop_oneof![
        20 => (data::intents(), prop::bool::weighted(0.1))
            .prop_map(|(intent, is_elsewhere)| Intent::Data { is_elsewhere, intent }),
        4 => any::<u8>().prop_map(|timer| Intent::Fire { timer }),
        1 => on_workers(),
        1 => on_registries(),
    ]
}

fn on_runs() -> impl Strategy<Value = Intent> {
    let few = || prop::option::weighted(0.3, 0..3_u8);
    prop_oneof![
        5 => (0..8_u8, few(), few(), any::<bool>()).prop_map(|(workflow, key, id, is_traced)| {
            Intent::Start { workflow, key, id, is_traced }
        }),
        5 => (0..10_u8, 0..3_u8, few())
            .prop_map(|(run, kind, id)| Intent::Signal { run, kind, id }),
        1 => (0..10_u8).prop_map(|run| Intent::Cancel { run }),
        1 => (0..10_u8, prop::option::of(any::<u8>()))
            .prop_map(|(run, token)| Intent::Info { run, token }),
        3 => (any::<u8>(), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(pick, is_valid, is_stale)| Intent::Decide { pick, is_valid, is_stale }),
        1 => (0..10_u8).prop_map(|run| Intent::Resume { run }),
        2 => (0..10_u8, 0..4_u8, prop::option::weighted(0.7, any::<u8>()))
            .prop_map(|(run, workflow, from)| Intent::Retry { run, workflow, from }),
    ]
}

pub(super) fn on_tasks() -> impl Strategy<Value = Intent> {
    prop_oneof![
        6 => (any::<u8>(), 0..15_u8)
            .prop_map(|(token, outcome)| Intent::Complete { token, outcome }),
        3 => (any::<u8>(), 0..3_u8, prop::option::weighted(0.3, 0..3_u8))
            .prop_map(|(token, kind, code)| Intent::Fail { token, kind, code }),
        1 => (any::<u8>(), 0..3_000_u64)
            .prop_map(|(token, extend_ms)| Intent::Touch { token, extend_ms }),
        1 => any::<u8>().prop_map(|action_run| Intent::Forge { action_run }),
        5 => (0..3_u8).prop_map(|action| Intent::Assign { action }),
    ]
}

fn on_workers() -> impl Strategy<Value = Intent> {
    (0..9_u8, 0..4_u8, 1..3_u8).prop_map(|(choice, worker, incarnation)| match choice {
        0..3 => Intent::Worker {
            worker,
            incarnation,
        },
        3 | 4 => Intent::Heartbeat {
            worker,
            incarnation,
        },
        5 => Intent::Drain { worker },
        6 => Intent::Deregister {
            worker,
            incarnation,
        },
        _ => Intent::Release {
            worker,
            incarnation,
            is_lost: choice == 7,
        },
    })
}

fn on_schedules() -> impl Strategy<Value = Intent> {
    prop_oneof![
        8 => (any::<u8>(), 0..200_u64, prop::bool::weighted(0.2)).prop_map(
            |(pick, forward_ms, is_wrong)| Intent::Schedule { pick, forward_ms, is_wrong }
        ),
        1 => (any::<bool>(), 0..2_u64).prop_map(|(is_paused, windows)| {
            Intent::CreateScheduled { is_paused, catchup_ms: windows * 300 }
        }),
    ]
}

fn on_registries() -> impl Strategy<Value = Intent> {
    let invoke = (0..4_u8, any::<u8>(), 0..300_u64, 0..3_u8, 0..5_u8);
    prop_oneof![
        5 => invoke.prop_map(|(action, priority, delay_ms, labels, key)| Intent::Invoke {
            action,
            priority,
            delay_ms: delay_ms.saturating_sub(150),
            labels,
            key: (key < 2).then_some(key),
        }),
        1 => (0..3_u8, 0..3_u32)
            .prop_map(|(action, retries)| Intent::Register { action, retries }),
        1 => (0..4_u8, prop::bool::weighted(0.7))
            .prop_map(|(action, is_enabled)| Intent::EnableAction { action, is_enabled }),
        1 => (0..8_u8, prop::bool::weighted(0.7))
            .prop_map(|(workflow, is_enabled)| Intent::EnableWorkflow { workflow, is_enabled }),
        1 => (0..3_u8, any::<bool>())
            .prop_map(|(version, is_other)| Intent::Create { version, is_other }),
        1 => (1..4_u8).prop_map(|action| Intent::DeleteAction { action }),
        1 => (0..10_u8).prop_map(|workflow| Intent::DeleteWorkflow { workflow }),
        1 => any::<u8>().prop_map(|pick| Intent::CancelActionRun { pick }),
        1 => (0..8_u8).prop_map(|term| Intent::BeginTerm { term }),
        1 => Just(Intent::Sweep),
        4 => Just(Intent::SweepRuns),
        2 => (0..4_u8, prop::option::of(any::<u8>()))
            .prop_map(|(action, dead_letter)| Intent::Requeue { action, dead_letter }),
        1 => (0..4_u8, prop::option::of(any::<u8>()))
            .prop_map(|(action, dead_letter)| Intent::Purge { action, dead_letter }),
        1 => (0..10_u8, 0..5_000_u64).prop_map(|(run, due_ms)| Intent::FireGone { run, due_ms }),
    ]
}

/// An info entry of a task, or of a caller.
pub(super) fn info(run_id: RunId, token: Option<TaskToken>) -> Body {
    let content = Json::from_checked("{\"info\":1}");
    match token {
        Some(token) => Body::AddTaskInfo(AddTaskInfo { token, content }),
        None => Body::AddInfo(AddInfo { run_id, content }),
    }
}
