//! A driver's reads of the timers (design rules 4 and 6).

use crate::replica::{Counting, Replica};
use crate::samples;
use crate::script::define;
use flotilla_engine::ids::WorkflowName;
use flotilla_engine::json::Json;
use flotilla_engine::rows::{TimerKey, TimerKind, Timers, encode_key};
use flotilla_engine::view::{DueTimers, TimerCursor};
use flotilla_engine::{Body, FireTimer, StartRun};

/// Starts a run that waits for a second.
fn start(replica: &mut Replica) {
    let start = StartRun::new(WorkflowName::new("brief").expect("a name"), Json::null());
    replica.ask(Body::StartRun(start)).expect("accepted");
}

fn replica() -> Replica {
    let mut replica = Replica::new();
    let create = samples::plain_revision(define(
        "define brief 1\n start: wait go timeout=1000 -> success=start",
    ));
    let created = replica.ask(Body::CreateDefinition(Box::new(create)));
    created.expect("the definition is right");
    replica
}

/// What is due, and where the read began in the table of waits.
fn look(replica: &Replica, cursor: &mut TimerCursor) -> (DueTimers, Vec<u8>) {
    let counting = Counting::new(&replica.store);
    let due = cursor.due_timers(&counting, replica.now_ms, 100);
    let waits = TimerKind::ALL.into_iter().zip(counting.beginnings());
    let (_, beginning) = waits
        .into_iter()
        .find(|(kind, _)| *kind == TimerKind::StepDeadline)
        .expect("each kind is read");
    (due.expect("memory does not fail"), beginning)
}

fn first_at(due_ms: u64) -> Vec<u8> {
    let key = encode_key::<Timers>(&TimerKey {
        kind: TimerKind::StepDeadline,
        due_ms,
        subject: 0,
        detail: 0,
    });
    key[..key.len() - 2 * size_of::<u64>()].to_vec()
}

#[test]
fn a_driver_reads_on_where_the_first_timer_was_and_misses_none() {
    let mut replica = replica();
    let mut cursor = TimerCursor::default();
    for _ in 0..3 {
        start(&mut replica);
        replica.now_ms += 10;
    }
    // Due at 2000, 2010 and 2020.
    let (due, beginning) = look(&replica, &mut cursor);
    assert_eq!((due.timers.len(), due.next_due_ms), (0, Some(2_000)));
    assert_eq!(beginning, first_at(0));
    replica.now_ms = 2_010;
    let (due, beginning) = look(&replica, &mut cursor);
    // The log's time was 1020 when it was read: a timer may still have been set from there on.
    assert_eq!((due.timers.len(), beginning), (2, first_at(1_020)));
    for timer in due.timers {
        replica
            .ask(Body::FireTimer(FireTimer { timer }))
            .expect("it is due");
    }
    assert_eq!(look(&replica, &mut cursor).0.next_due_ms, Some(2_020));
    start(&mut replica);
    replica.now_ms = 5_000;
    let (due, beginning) = look(&replica, &mut cursor);
    assert_eq!((due.timers.len(), beginning), (2, first_at(2_010)));
    // What is due and not fired stays where the reads begin.
    start(&mut replica);
    let (same, _) = look(&replica, &mut cursor);
    assert_eq!(
        (same.timers, same.next_due_ms),
        (due.timers.clone(), Some(6_000))
    );
    assert_eq!(look(&replica, &mut cursor).1, first_at(2_020));
    for timer in due.timers {
        replica
            .ask(Body::FireTimer(FireTimer { timer }))
            .expect("it is due");
    }
    let (due, beginning) = look(&replica, &mut cursor);
    assert_eq!((due.next_due_ms, beginning), (Some(6_000), first_at(2_020)));
    assert_eq!(look(&replica, &mut cursor).1, first_at(5_000));
}
