//! Quarantine after a panic, and release (design rule 10).

use super::player::{Player, command};
use crate::invariants::{read, rows};
use flotilla_engine::ids::{Namespace, RunNumber, WorkflowName};
use flotilla_engine::rows::{
    ActionRunOwner, ActionRuns, Definitions, GoneWorkers, Plans, Quarantine, QuarantineRecord,
    QuarantinedItem, QuarantinedKind, Runs, Schedules, TimerKey, TimerKind, Timers, TriggeredBy,
    WorkerNumbers, encode_key, encode_record,
};
use flotilla_engine::store::{MemoryStore, Writes};
use flotilla_engine::{Body, Entry, Rejection, ReleaseQuarantined, Reply};

/// Sets things aside as a panic in their timers would: the timer that is due first is gone with it.
pub(super) fn quarantine(player: &mut Player, picks: &[(u8, bool)]) {
    let all = subjects(player);
    for (pick, loses_timer) in picks {
        let Some(subject) = all.get(usize::from(*pick) % all.len().max(1)) else {
            return;
        };
        let record = QuarantineRecord {
            at_ms: 0,
            raft_index: player.raft_index,
        };
        let row = encode_record::<Quarantine>(&record);
        let mut writes = Writes::from([(encode_key::<Quarantine>(subject), Some(row))]);
        let is_new = read::<Quarantine>(&player.store, subject).is_none();
        if let (QuarantinedKind::Run, true) = (subject.0, is_new)
            && let Some(key) = counting_schedule(&player.store, RunNumber(subject.1))
        {
            let mut schedule = read::<Schedules>(&player.store, &key).expect("it counts its runs");
            schedule.quarantined_count += 1;
            let row = encode_record::<Schedules>(&schedule);
            writes.put(&encode_key::<Schedules>(&key), &row);
        }
        if let Some(timer) = first_timer(player, *subject).filter(|_| *loses_timer) {
            writes.delete(&encode_key::<Timers>(&timer));
        }
        player.store.write(&writes);
    }
    player.reopen();
}

/// Sets a run aside.
pub(super) fn quarantine_run(player: &mut Player, number: RunNumber) {
    let subject = (QuarantinedKind::Run, number.0);
    let all = subjects(player);
    let position = all.iter().position(|one| *one == subject);
    let pick = u8::try_from(position.expect("the run is there")).expect("few subjects");
    quarantine(player, &[(pick, false)]);
}

/// The schedule that counts an open run among its own.
pub(super) fn counting_schedule(
    store: &MemoryStore,
    number: RunNumber,
) -> Option<(Namespace, WorkflowName)> {
    let run = read::<Runs>(store, &number)?;
    let TriggeredBy::Schedule { .. } = run.triggered_by else {
        return None;
    };
    let definition = read::<Definitions>(store, &run.definition)?.definition;
    let is_open = run.status.is_open();
    is_open.then_some((run.namespace, definition.name))
}

/// Releases all quarantined items, in one entry unless it is full before that.
pub(super) fn release_all(player: &mut Player) -> Vec<Result<Reply, Rejection>> {
    let is_full = |reply: &Result<_, Rejection>| matches!(reply, Err(Rejection::EntryFull));
    let mut replies = Vec::new();
    loop {
        let aside = rows::<Quarantine>(&player.store, &()).into_iter();
        let releases = aside.map(|((kind, number), _)| {
            command(Body::ReleaseQuarantined(ReleaseQuarantined {
                kind,
                number,
            }))
        });
        let entry = Entry {
            stamp: player.stamp(),
            offers: Vec::new(),
            commands: releases.collect(),
        };
        let applied = player.play(&entry).replies;
        let was_full = applied.iter().any(is_full);
        replies.extend(applied.into_iter().filter(|reply| !is_full(reply)));
        if !was_full {
            return replies;
        }
    }
}

/// Everything whose obligations are its own timers and tasks.
fn subjects(player: &Player) -> Vec<QuarantinedItem> {
    let store = &player.store;
    let runs = rows::<Runs>(store, &()).into_iter();
    let mut all: Vec<QuarantinedItem> = runs
        .map(|(number, _)| (QuarantinedKind::Run, number.0))
        .collect();
    let action_runs = rows::<ActionRuns>(store, &()).into_iter();
    all.extend(
        action_runs
            .filter(|(_, record)| record.owner == ActionRunOwner::Caller)
            .map(|(number, _)| (QuarantinedKind::ActionRun, number.0)),
    );
    let workers = rows::<WorkerNumbers>(store, &()).into_iter();
    all.extend(workers.map(|(number, _)| (QuarantinedKind::Worker, number.0)));
    let gone = rows::<GoneWorkers>(store, &()).into_iter();
    all.extend(gone.map(|(number, _)| (QuarantinedKind::Worker, number.0)));
    let plans = rows::<Plans>(store, &()).into_iter();
    all.extend(plans.map(|(_, plan)| (QuarantinedKind::Plan, plan.number.0)));
    all
}

/// The first of the timers whose panic sets the subject aside.
fn first_timer(player: &Player, (kind, number): QuarantinedItem) -> Option<TimerKey> {
    let store = &player.store;
    let of_task = |timer: &TimerKey| {
        let action_runs = rows::<ActionRuns>(store, &()).into_iter();
        let mut owned = action_runs.filter(|(action_run, _)| action_run.0 == timer.subject);
        owned.any(|(action_run, record)| match record.owner {
            ActionRunOwner::Step { run, .. } => (QuarantinedKind::Run, run.0) == (kind, number),
            ActionRunOwner::Caller => (QuarantinedKind::ActionRun, action_run.0) == (kind, number),
        })
    };
    let mut timers = rows::<Timers>(store, &())
        .into_iter()
        .map(|(timer, ())| timer);
    timers.find(|timer| match timer.kind {
        TimerKind::StepWake
        | TimerKind::StepDeadline
        | TimerKind::Continuation
        | TimerKind::RunTimeout
        | TimerKind::StepTotal
        | TimerKind::StepAttempt
        | TimerKind::RunStart => (QuarantinedKind::Run, timer.subject) == (kind, number),
        TimerKind::TaskReady | TimerKind::ReportExpiry | TimerKind::WaitExpiry => of_task(timer),
        TimerKind::LeaseExpiry | TimerKind::WorkerSilence | TimerKind::WorkerGone => {
            (QuarantinedKind::Worker, timer.subject) == (kind, number)
        }
        TimerKind::CacheExpiry => (QuarantinedKind::Plan, timer.subject) == (kind, number),
        TimerKind::StreamSweep | TimerKind::GroupDue => false,
    })
}
