//! Properties over random histories.

mod block_trees;
mod cursors;
mod data;
mod dead_letters;
mod definitions;
mod groups;
mod moves;
mod plan_moves;
mod player;
mod quarantine;
mod queries;
mod results;
mod resumed_history;
mod resumed_trees;
mod resumed_undone;
mod retried_trees;
mod retries;
mod schedule;
mod tree_tasks;
mod trees;
mod triggers;
mod undone_history;
mod undone_trees;
mod verdicts;
mod visits;

use crate::invariants;
use cursors::Cursors;
use flotilla_engine::definition::StepIndex;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{
    Activations, Cluster, ClusterRecord, EventKind, History, PendingWorks, Quarantine,
    QuarantinedKind, RequestAges, Requests, Runs, Schedules, Table, Timers, decode_record,
    encode_key, encode_record,
};
use flotilla_engine::store::{MemoryStore, Writes};
use flotilla_engine::{Applied, Body, Budgets, Entry, Rejection};
use moves::{
    Intent, Move, histories, single_data_histories, single_histories, single_run_histories,
};
use player::Player;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Failing cases are not kept in files: a found bug becomes a script.
fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// The default budgets, or some that few steps and commands use up.
fn budgets() -> impl Strategy<Value = Budgets> {
    let small = (1..4_usize, 40..400_usize).prop_map(|(steps, rows)| {
        let mut budgets = Budgets::default();
        budgets.turn.steps = steps;
        budgets.entry.rows = rows;
        budgets
    });
    prop_oneof![Just(Budgets::default()), small]
}

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn every_entry_leaves_the_tables_in_agreement(budgets in budgets(), history in histories()) {
        let mut player = Player::with(budgets);
        let mut cursors = Cursors::default();
        invariants::check(&player.store);
        for one in &history {
            let entry = player.entry(one);
            let applied = player.play(&entry);
            prop_assert_eq!(applied.replies.len(), entry.commands.len());
            let is_bug = |reply: &Result<_, Rejection>| matches!(reply, Err(Rejection::Internal(_)));
            prop_assert!(!applied.replies.iter().any(is_bug), "{:?}", applied.replies);
            invariants::check(&player.store);
            cursors.expect_to_miss_nothing(&player.store, &applied);
            visits::expect_each_once(&player.store, player.raft_index);
        }
    }

    #[test]
    fn the_same_entries_give_the_same_replies_and_bytes(budgets in budgets(), history in histories()) {
        let (mut one, mut other) = (Player::with(budgets), Player::with(budgets));
        for entry in play_all(&mut one, &history) {
            let decoded = Entry::decode(&entry.0.encode()).expect("just encoded");
            prop_assert_eq!(&decoded, &entry.0);
            prop_assert_eq!(other.play(&decoded), entry.1);
        }
        prop_assert!(one.store == other.store);
    }

    #[test]
    fn a_cache_changes_no_reply_and_no_byte(budgets in budgets(), history in histories()) {
        let (mut warm, mut cold) = (Player::with(budgets), Player::with(budgets));
        for (entry, applied) in play_all(&mut warm, &history) {
            cold.reopen();
            prop_assert_eq!(cold.play(&entry), applied);
        }
        prop_assert!(warm.store == cold.store);
    }

    #[test]
    fn commands_in_one_entry_do_what_they_do_one_by_one(history in histories()) {
        let (mut together, mut apart) = (Player::new(), Player::new());
        for mut one in history {
            // Offers and chance belong to an entry: with them only single commands compare.
            if !one.offers.is_empty() {
                one.commands.truncate(1);
            }
            let entry = together.entry(&one);
            let replies = together.play(&entry).replies;
            let alone = entry.commands.iter().map(|command| {
                let entry = Entry { commands: vec![command.clone()], ..entry.clone() };
                apart.play(&entry).replies.remove(0)
            });
            prop_assert_eq!(replies, alone.collect::<Vec<_>>());
        }
        prop_assert!(without_indexes(&together.store) == without_indexes(&apart.store));
    }

    #[test]
    fn a_rejection_writes_nothing_but_the_time(history in single_histories()) {
        let mut player = Player::new();
        for one in &history {
            let entry = player.entry(one);
            let before = cluster(&player.store);
            let applied = player.play(&entry);
            if applied.replies[0].is_err() {
                let clock = encode_key::<Cluster>(&());
                prop_assert!(applied.writes.keys().eq([clock.as_slice()]));
                let now_ms = applied.now_ms;
                prop_assert_eq!(cluster(&player.store), ClusterRecord { now_ms, ..before });
                prop_assert!(applied.effects.is_empty());
            }
        }
    }

    #[test]
    fn a_panic_changes_nothing_but_what_quarantine_says(
        history in single_histories(),
        after in single_histories(),
        pick in any::<u8>(),
    ) {
        let mut player = Player::new();
        let _ = play_all(&mut player, &history);
        let Some(damaged) = damage(&mut player, pick) else {
            return Ok(());
        };
        play_contained(&mut player, &after, damaged)?;
    }

    #[test]
    fn what_is_released_has_lost_nothing(
        budgets in budgets(),
        before in histories(),
        picks in prop::collection::vec(any::<(u8, bool)>(), 1..4),
        meanwhile in histories(),
        after in histories(),
    ) {
        let mut player = Player::with(budgets);
        let _ = play_all(&mut player, &before);
        quarantine::quarantine(&mut player, &picks);
        let _ = play_all(&mut player, &meanwhile);
        let released = quarantine::release_all(&mut player);
        prop_assert!(released.iter().all(Result::is_ok), "{:?}", released);
        prop_assert!(invariants::rows::<Quarantine>(&player.store, &()).is_empty());
        invariants::check(&player.store);
        for (_, applied) in play_all(&mut player, &after) {
            let is_bug = |reply: &Result<_, Rejection>| matches!(reply, Err(Rejection::Internal(_)));
            prop_assert!(!applied.replies.iter().any(is_bug), "{:?}", applied.replies);
        }
        invariants::check(&player.store);
    }
}

/// A property holds for nothing if its histories reach nothing.
#[test]
fn random_histories_reach_every_command_and_event() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    let mut panics = 0;
    for pick in (0..=u8::MAX).cycle().take(3_000) {
        let mut sample = |histories: BoxedStrategy<Vec<Move>>| {
            let tree = histories.new_tree(&mut runner);
            tree.expect("a history").current()
        };
        let (history, after) = (
            sample(single_run_histories().boxed()),
            sample(single_run_histories().boxed()),
        );
        let mut player = Player::new();
        reached.extend(reached_by(&mut player, &history));
        if let Some(damaged) = damage(&mut player, pick) {
            panics += play_contained(&mut player, &after, damaged).expect("the property holds");
        }
        let history = sample(single_data_histories().boxed());
        reached.extend(reached_by(&mut Player::new(), &history));
    }
    let missing: Vec<&str> = REACHED
        .split_whitespace()
        .filter(|name| !reached.contains(*name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
    assert!(panics > 20, "only {panics} histories met the damaged run");
}

/// Small budgets test nothing if no history uses them up.
#[test]
fn random_histories_use_up_small_budgets() {
    let mut runner = TestRunner::deterministic();
    let (mut deferred, mut refused) = (0, 0);
    for _ in 0..500 {
        let mut budgets = Budgets::default();
        (budgets.turn.steps, budgets.entry.rows) = (1, 40);
        let mut player = Player::with(budgets);
        let tree = histories().new_tree(&mut runner).expect("a history");
        for one in &tree.current() {
            let entry = player.entry(one);
            let replies = player.play(&entry).replies;
            let is_full = |reply: &&Result<_, _>| matches!(reply, Err(Rejection::EntryFull));
            refused += replies.iter().filter(is_full).count();
            deferred += invariants::rows::<PendingWorks>(&player.store, &()).len();
        }
    }
    assert!(deferred > 100, "{deferred} pieces of work");
    assert!(refused > 100, "{refused} commands");
}

const REACHED: &str = "CreateDefinition SetWorkflowEnabled StartRun SignalRun CancelRun ResumeRun RetryRun AddInfo AddTaskInfo Info \
    DecideSchemaCheck DecideLocks RegisterAction DeleteAction SetActionEnabled InvokeAction CancelActionRun CompleteTask FailTask TouchTask \
    AssignTasks RegisterWorker HeartbeatWorker DrainWorker DeregisterWorker ReleaseWorker FireTimer \
    BeginTerm SweepRequests SetNextFiring FireSchedule SweepRuns RequeueDeadLetters PurgeDeadLetters ScheduleStarted \
    SetKey DeleteKey SweepKeys CreateNamespace DeleteNamespace SetClusterSettings SetQuota \
    CreateStream AppendRecords TrimStream DeleteStream CreateGroup JoinGroup LeaveGroup TakeRecords AckRecords \
    NackRecords TouchRecords DeleteGroup FireTrigger TriggerStarted DeleteWorkflow \
    WorkflowStarted RunBegan ConcurrencyWaiting RunRetried RunResumed PhaseChanged HandlerFailed CompensationStarted CompensationCompleted CompensationFailed StepDelayed StepStarted StepCompleted StepRetry FallbackStarted StepTimeout LoopWarning RetryScheduled \
    PollScheduled PollExhausted WaitingForSignal SignalReceived SignalMatched SignalTimeout \
    ActionNotFound ActionDisabled ChildRefused AwaitingAction ActionStarted ActionRetryScheduled \
    ActionCompleted ChildStarted ChildCompleted WorkflowCompleted WorkflowFailed WorkflowCancelled \
    AcceptTask ReportTask InvalidateCache ResetPlan ExecutorStart ExecutorSuccess ExecutorOutcome \
    ExecutorRetry ExecutorExhausted BreakerSkip BreakerOpened BreakerClosed RateLimited \
    AwaitingReport CacheHit Fallback";

/// The names of the commands that were accepted, and of the events that they led to.
fn reached_by(player: &mut Player, history: &[Move]) -> BTreeSet<String> {
    let played = play_all(player, history);
    let accepted = played
        .iter()
        .filter(|(_, applied)| applied.replies[0].is_ok());
    let mut reached: BTreeSet<String> = accepted
        .map(|(entry, _)| first_word(&entry.commands[0].command.body))
        .collect();
    for (_, record) in invariants::rows::<History>(&player.store, &()) {
        reached.extend(record.events.iter().map(|event| match &event.kind {
            EventKind::Plan(event) => first_word(event),
            kind => first_word(kind),
        }));
    }
    reached
}

/// The name of an enum's variant.
fn first_word(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.split(|c: char| !c.is_alphanumeric())
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Plays a history and says which entries it was, and what they gave.
fn play_all(player: &mut Player, history: &[Move]) -> Vec<(Entry, Applied)> {
    let play = |one: &Move| {
        let entry = player.entry(one);
        let applied = player.play(&entry);
        (entry, applied)
    };
    history.iter().map(play).collect()
}

/// Plays on with a damaged run: whatever fails must set that run aside and change nothing else.
fn play_contained(
    player: &mut Player,
    history: &[Move],
    damaged: RunNumber,
) -> Result<u32, TestCaseError> {
    let mut panics = 0;
    for one in history {
        let entry = player.entry(one);
        let before = player.store.clone();
        let applied = player.play(&entry);
        if matches!(applied.replies[0], Err(Rejection::Internal(_))) {
            panics += 1;
            let change = Change {
                before: &before,
                after: &player.store,
                entry: &entry,
                writes: &applied.writes,
            };
            check_quarantine(&change, damaged)?;
        }
    }
    prop_assert!(panics <= 1, "a quarantined run is not retried");
    Ok(panics)
}

/// What an entry changed.
struct Change<'a> {
    before: &'a MemoryStore,
    after: &'a MemoryStore,
    entry: &'a Entry,
    writes: &'a Writes,
}

/// The clock, the quarantine row, one event, the count of the run's schedule, and a timer that the command named.
fn check_quarantine(change: &Change<'_>, damaged: RunNumber) -> Result<(), TestCaseError> {
    let Change {
        before,
        after,
        entry,
        writes,
    } = *change;
    let run = invariants::read::<Runs>(after, &damaged).expect("the run is kept");
    let mut expected = BTreeSet::from([
        encode_key::<Cluster>(&()),
        encode_key::<Quarantine>(&(QuarantinedKind::Run, damaged.0)),
        encode_key::<Runs>(&damaged),
        encode_key::<History>(&(damaged, run.history.events_count)),
    ]);
    if let Some(schedule) = quarantine::counting_schedule(before, damaged) {
        expected.insert(encode_key::<Schedules>(&schedule));
    }
    if let Body::FireTimer(fire) = &entry.commands[0].command.body {
        let timer = encode_key::<Timers>(&fire.timer);
        if let Some(written) = writes.get(&timer) {
            prop_assert_eq!(written, None);
            expected.insert(timer);
        }
    }
    prop_assert_eq!(
        writes.keys().map(<[u8]>::to_vec).collect::<BTreeSet<_>>(),
        expected
    );
    let old = invariants::read::<Runs>(before, &damaged).expect("the run was there");
    let mut same = run.clone();
    same.history = old.history.clone();
    prop_assert_eq!(same, old);
    let panics_count = cluster(before).panics_count + 1;
    prop_assert_eq!(cluster(after).panics_count, panics_count);
    Ok(())
}

/// Puts an open run on a step that its definition does not have.
fn damage(player: &mut Player, pick: u8) -> Option<RunNumber> {
    let runs = invariants::rows::<Runs>(&player.store, &());
    let open: Vec<_> = runs
        .into_iter()
        .filter(|(_, run)| run.status.is_open())
        .collect();
    let position = usize::from(pick) % open.len().max(1);
    let (number, _) = open.into_iter().nth(position)?;
    for (key, mut active) in invariants::rows::<Activations>(&player.store, &number) {
        active.step = StepIndex(999);
        let row = (
            encode_key::<Activations>(&key),
            Some(encode_record::<Activations>(&active)),
        );
        player.store.write(&Writes::from([row]));
    }
    player.reopen();
    Some(number)
}

fn cluster(store: &MemoryStore) -> ClusterRecord {
    invariants::read::<Cluster>(store, &()).unwrap_or_default()
}

/// All rows, as if every entry had the same place in the log. The lists of request ids by entry are left out: the ids
/// themselves are there.
fn without_indexes(store: &MemoryStore) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let rows = store.rows();
    let kept = rows.filter(|(key, _)| key.first() != Some(&RequestAges::NUMBER));
    kept.map(|(key, value)| (key.to_vec(), without_index(key, value)))
        .collect()
}

fn without_index(key: &[u8], value: &[u8]) -> Vec<u8> {
    match key[0] {
        History::NUMBER => changed::<History>(value, |record| record.raft_index = 0),
        Requests::NUMBER => changed::<Requests>(value, |record| record.accepted_by = 0),
        Cluster::NUMBER => changed::<Cluster>(value, |record| record.requests_first = 0),
        _ => value.to_vec(),
    }
}

/// The encoded record with a change.
fn changed<T: Table>(value: &[u8], change: impl FnOnce(&mut T::Record)) -> Vec<u8> {
    let mut record = decode_record::<T>(value).expect("a record of the table");
    change(&mut record);
    encode_record::<T>(&record)
}

/// Its deferred work does nothing, but the work and the timer belong together.
#[test]
fn a_cancelled_run_that_is_released_still_has_the_timer_of_its_deferred_work() {
    let mut budgets = Budgets::default();
    budgets.turn.steps = 1;
    let mut player = Player::with(budgets);
    let one = |intent| Move {
        forward_ms: 0,
        offers: Vec::new(),
        commands: vec![(intent, None)],
    };
    let start = Intent::Start {
        workflow: 8,
        key: None,
        id: None,
        is_traced: false,
    };
    let _ = play_all(&mut player, &[one(start), one(Intent::Cancel { run: 3 })]);
    let runs = invariants::rows::<Runs>(&player.store, &());
    let [(number, run)] = &runs[..] else {
        panic!("expected one run, but found {runs:?}");
    };
    assert!(run.continuation.is_some() && !run.status.is_open());
    quarantine::quarantine_run(&mut player, *number);
    let _ = play_all(&mut player, &[one(Intent::Fire { timer: 0 })]);
    quarantine::release_all(&mut player);
    invariants::check(&player.store);
}
