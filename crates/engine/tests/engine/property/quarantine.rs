//! What a panic sets aside, and what takes it up again (design rule 10).

use super::player::{Player, command};
use crate::invariants::rows;
use flotilla_engine::store::Writes;
use flotilla_engine::tables::{
    ActionRunOwner, ActionRuns, Plans, Quarantine, QuarantineRecord, Quarantined, QuarantinedKind,
    Runs, TimerKey, TimerKind, Timers, Workers, encode_key, encode_record,
};
use flotilla_engine::{Applied, Body, Entry, RetryQuarantined};

/// Sets things aside as a panic in their timers would: the timer that is due first is gone with it.
pub(super) fn set_aside(player: &mut Player, picks: &[(u8, bool)]) {
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
        if let Some(timer) = first_timer(player, *subject).filter(|_| *loses_timer) {
            writes.delete(&encode_key::<Timers>(&timer));
        }
        player.store.write(&writes);
    }
    player.reopen();
}

/// Takes up whatever is set aside, in one entry.
pub(super) fn take_up_all(player: &mut Player) -> Applied {
    let aside = rows::<Quarantine>(&player.store, &()).into_iter();
    let retries = aside.map(|((kind, number), _)| {
        command(Body::RetryQuarantined(RetryQuarantined { kind, number }))
    });
    let entry = Entry {
        stamp: player.stamp(),
        offers: Vec::new(),
        commands: retries.collect(),
    };
    player.play(&entry)
}

/// Everything whose obligations are its own timers and tasks.
fn subjects(player: &Player) -> Vec<Quarantined> {
    let store = &player.store;
    let runs = rows::<Runs>(store, &()).into_iter();
    let mut all: Vec<Quarantined> = runs
        .map(|(number, _)| (QuarantinedKind::Run, number.0))
        .collect();
    let action_runs = rows::<ActionRuns>(store, &()).into_iter();
    all.extend(
        action_runs
            .filter(|(_, record)| record.owner == ActionRunOwner::Caller)
            .map(|(number, _)| (QuarantinedKind::ActionRun, number.0)),
    );
    let workers = rows::<Workers>(store, &()).into_iter();
    all.extend(workers.map(|(_, worker)| (QuarantinedKind::Worker, worker.number.0)));
    let plans = rows::<Plans>(store, &()).into_iter();
    all.extend(plans.map(|(_, plan)| (QuarantinedKind::Plan, plan.number.0)));
    all
}

/// The first of the timers whose panic sets the subject aside.
fn first_timer(player: &Player, (kind, number): Quarantined) -> Option<TimerKey> {
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
        TimerKind::StepWake | TimerKind::SignalTimeout | TimerKind::Continuation => {
            (QuarantinedKind::Run, timer.subject) == (kind, number)
        }
        TimerKind::TaskReady | TimerKind::LeaseExpiry | TimerKind::ReportExpiry => of_task(timer),
        TimerKind::WorkerSilence => (QuarantinedKind::Worker, timer.subject) == (kind, number),
        TimerKind::CacheExpiry => (QuarantinedKind::Plan, timer.subject) == (kind, number),
        TimerKind::StreamSweep | TimerKind::GroupDue => false,
    })
}
