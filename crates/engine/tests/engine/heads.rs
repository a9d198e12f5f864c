//! The reads of commands and drivers: none walks the tombstones of deleted rows, and none decodes records that it does
//! not use (design rule 4).

use crate::replica::{Counting, Replica};
use crate::samples;
use crate::script::define;
use flotilla_engine::bytes::Bytes;
use flotilla_engine::definition::TriggerIndex;
use flotilla_engine::ids::{KvKey, StreamName, StreamNumber, WorkflowName};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{KeyExpiries, Keys, Records, StreamSettings, encode_prefix};
use flotilla_engine::view::{self, InputJudge, KeyCursor};
use flotilla_engine::{
    AppendRecords, Body, CreateGroup, CreateStream, NewGroup, NewRecord, RecordId, Reply,
    SetCondition, SetKey, StreamPosition, SweepKeys, TrimStream, TrimTo, reply,
};
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

/// Sets a key that lives for so long.
fn set(replica: &mut Replica, key: &str, ttl_ms: u64) {
    let set = SetKey {
        key: KvKey::new(key).expect("a key"),
        value: Bytes::from("v"),
        ttl_ms: NonZeroU64::new(ttl_ms),
        condition: SetCondition::Always,
    };
    replica.ask(Body::SetKey(set)).expect("accepted");
}

/// When the first key expired, and where the read began.
fn look(replica: &Replica, cursor: &mut KeyCursor) -> (Option<u64>, Vec<u8>) {
    let counting = Counting::new(&replica.store);
    let first_ms = cursor.first_expired_ms(&counting);
    let first_ms = first_ms.expect("memory does not fail");
    (first_ms, counting.beginnings().remove(0))
}

fn expiring_at(due_ms: u64) -> Vec<u8> {
    encode_prefix::<KeyExpiries>(&due_ms)
}

/// Lets the cluster's time follow.
fn tick(replica: &mut Replica) {
    set(replica, "clock", 0);
}

#[test]
fn a_sweep_of_keys_begins_at_the_first_that_has_expired_and_reads_no_value() {
    let mut replica = Replica::new();
    let mut cursor = KeyCursor::default();
    set(&mut replica, "a", 10);
    set(&mut replica, "b", 20);
    assert_eq!(look(&replica, &mut cursor), (None, expiring_at(0)));
    replica.now_ms = 1_015;
    tick(&mut replica);
    assert_eq!(
        look(&replica, &mut cursor),
        (Some(1_010), expiring_at(1_000))
    );
    let sweep = |from_ms| Body::SweepKeys(SweepKeys { from_ms });
    replica.ask(sweep(1_010)).expect("accepted");
    assert_eq!(replica.scans_of::<KeyExpiries>(), [expiring_at(1_010)]);
    assert_eq!(replica.lookups_of::<Keys>(), 0);
    let key = |name| (samples::namespace(), KvKey::new(name).expect("a key"));
    assert!(!replica.has::<Keys>(&key("a")) && replica.has::<Keys>(&key("b")));
    assert_eq!(look(&replica, &mut cursor), (None, expiring_at(1_010)));
    // A key may still expire from the log's time on, and is not missed.
    set(&mut replica, "c", 1);
    replica.now_ms = 1_030;
    tick(&mut replica);
    assert_eq!(
        look(&replica, &mut cursor),
        (Some(1_016), expiring_at(1_015))
    );
}

fn stream() -> StreamName {
    StreamName::new("s").expect("a name")
}

fn create_stream(replica: &mut Replica, partitions: u32) {
    let settings = StreamSettings {
        partitions: NonZeroU32::new(partitions).expect("above zero"),
        ..StreamSettings::default()
    };
    let create = CreateStream {
        stream: stream(),
        settings,
    };
    replica.ask(Body::CreateStream(create)).expect("accepted");
}

/// Appends a record to a partition; its id.
fn append(replica: &mut Replica, partition: u32) -> RecordId {
    let record = NewRecord {
        payload: Bytes::from("1"),
        headers: BTreeMap::new(),
        key: None,
        partition: Some(partition),
    };
    let append = AppendRecords {
        stream: stream(),
        records: vec![record],
    };
    match replica.ask(Body::AppendRecords(append)) {
        Ok(Reply::RecordsAppended(reply::RecordsAppended { first })) => first,
        other => panic!("not appended, but {other:?}"),
    }
}

#[test]
fn a_group_that_begins_among_records_that_are_gone_looks_behind_them() {
    let mut replica = Replica::new();
    create_stream(&mut replica, 1);
    let gone = append(&mut replica, 0);
    replica.now_ms += 1_000;
    let front = append(&mut replica, 0);
    let trim = TrimStream {
        stream: stream(),
        to: TrimTo::Before(front),
    };
    replica.ask(Body::TrimStream(trim)).expect("accepted");
    let new = NewGroup {
        settings: samples::group_settings(),
        start: StreamPosition::Id(gone),
    };
    let mut group = samples::group();
    group.stream = stream();
    let create = CreateGroup { group, new };
    replica.ask(Body::CreateGroup(create)).expect("accepted");
    let first = encode_prefix::<Records>(&(StreamNumber(1), 0_u32, front));
    assert_eq!(replica.scans_of::<Records>(), [first]);
}

/// Every payload is JSON, and no input is refused.
struct Accepts;

impl InputJudge for Accepts {
    fn is_json(&self, _: &[u8]) -> bool {
        true
    }

    fn refusal(&self, _: &Json) -> Option<String> {
        None
    }
}

/// Fires what the trigger has to fire now.
fn fire(replica: &mut Replica) {
    let workflow = WorkflowName::new("order").expect("a name");
    let key = (samples::namespace(), workflow, TriggerIndex(0));
    let firings = view::trigger_firings(&replica.store, &key, replica.now_ms, 100);
    for firing in firings.expect("memory does not fail") {
        let command = firing.command(&Accepts).expect("something to fire");
        replica.ask(Body::FireTrigger(command)).expect("accepted");
    }
}

#[test]
fn an_append_reads_no_record_to_find_out_when_a_trigger_is_due() {
    let mut replica = Replica::new();
    create_stream(&mut replica, 8);
    let text = "define order 1\n trigger s batch=100 timeout=50\n \
        start: wait go -> success=flo.Completed";
    let create = samples::plain_revision(define(text));
    let created = replica.ask(Body::CreateDefinition(Box::new(create)));
    created.expect("the definition is right");
    // What was fired stays: the trigger stands in the midst of each partition.
    for partition in 0..8 {
        append(&mut replica, partition);
    }
    replica.now_ms += 50;
    fire(&mut replica);
    for partition in 0..8 {
        append(&mut replica, partition);
    }
    for partition in (0..8).rev() {
        append(&mut replica, partition);
        assert!(replica.scans_of::<Records>().is_empty());
    }
    // The first of a partition is looked for once the trigger has passed the one before, and no more.
    replica.now_ms += 50;
    fire(&mut replica);
    append(&mut replica, 3);
    append(&mut replica, 3);
    assert!(replica.scans_of::<Records>().is_empty());
}
