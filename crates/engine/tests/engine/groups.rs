//! The cost of a consumer group's timer, and the groups that triggers leave.

use crate::replica::Replica;
use crate::script::define;
use crate::{invariants, samples};
use flotilla_engine::bytes::Bytes;
use flotilla_engine::definition::GroupMode;
use flotilla_engine::ids::{Namespace, StreamName};
use flotilla_engine::limits::{DEAD_LETTER_STREAMS_MAX, GROUPS_MAX, STREAMS_MAX};
use flotilla_engine::rows::{
    Deliveries, GroupNames, GroupRecord, Groups, StreamCounts, Streams, TimerKind, Timers,
    encode_key, encode_record,
};
use flotilla_engine::store::Writes;
use flotilla_engine::{
    AppendRecords, Body, CreateDefinition, CreateGroup, FireTimer, GroupRef, GroupSettings,
    JoinGroup, NackRecords, NewGroup, NewRecord, RecordId, Reply, StreamPosition, TakeId,
    TakeRecords, reply,
};
use std::collections::BTreeMap;

/// Records in flight, each in a separate delivery.
const RECORDS_COUNT: usize = 1_000;

fn append(stream: StreamName, records_count: usize) -> AppendRecords {
    let record = NewRecord {
        payload: Bytes::from("{}"),
        headers: BTreeMap::new(),
        key: None,
        partition: None,
    };
    AppendRecords {
        stream,
        records: vec![record; records_count],
    }
}

/// A replica whose group has given out every record once, which is as often as it may.
fn replica() -> Replica {
    replica_of(1)
}

/// A replica whose group has delivered every record once; records are delivered `max_deliveries` times at most.
fn replica_of(max_deliveries: u32) -> Replica {
    let mut replica = Replica::new();
    let append = append(samples::stream(), RECORDS_COUNT);
    replica.ask(Body::AppendRecords(append)).expect("accepted");
    let new = NewGroup {
        settings: GroupSettings::new(GroupMode::Shared, 30_000, max_deliveries)
            .expect("half a minute"),
        start: StreamPosition::Id(RecordId::START),
    };
    let group = samples::group();
    let create = Body::CreateGroup(CreateGroup { group, new });
    replica.ask(create).expect("accepted");
    replica.ask(join()).expect("accepted");
    for take in 0..RECORDS_COUNT {
        let taken = replica.ask(take_one(take));
        assert_eq!(
            taken,
            Ok(Reply::RecordsTaken(reply::RecordsTaken { count: 1 }))
        );
    }
    replica
}

fn join() -> Body {
    Body::JoinGroup(JoinGroup {
        group: samples::group(),
        consumer: samples::consumer(),
        incarnation: 1,
        worker: None,
        create: None,
        is_renewal: false,
    })
}

fn take_one(take: usize) -> Body {
    Body::TakeRecords(TakeRecords {
        group: samples::group(),
        consumer: samples::consumer(),
        incarnation: 1,
        take: TakeId(take as u64),
        count_max: 1,
    })
}

fn group(replica: &Replica) -> GroupRecord {
    invariants::rows::<Groups>(&replica.store, &()).remove(0).1
}

/// Fires the group's timer.
fn fire(replica: &mut Replica) {
    let timers = invariants::rows::<Timers>(&replica.store, &TimerKind::GroupDue);
    let timer = timers[0].0;
    let fired = replica.ask(Body::FireTimer(FireTimer { timer }));
    assert_eq!(fired, Ok(Reply::Done(reply::Done {})));
}

#[test]
fn each_batch_of_dead_letters_continues_after_the_last_one_and_reads_no_more_than_it_moves() {
    let mut replica = replica();
    replica.now_ms += 30_000;
    let mut firings_count = 0;
    while group(&replica).pending_count() > 0 {
        let before = group(&replica).dead_count;
        fire(&mut replica);
        firings_count += 1;
        assert!(replica.rows <= 20, "{} rows", replica.rows);
        assert!(group(&replica).dead_count <= before + 16);
    }
    assert_eq!(firings_count, RECORDS_COUNT.div_ceil(16));
    assert_eq!(group(&replica).dead_count, RECORDS_COUNT as u64);
    invariants::check(&replica.store);
}

#[test]
fn a_firing_reads_a_few_rows_however_many_records_are_due_again() {
    let mut replica = replica_of(2);
    for ((_, consumer, take), delivery) in invariants::rows::<Deliveries>(&replica.store, &()) {
        let nack = NackRecords {
            group: samples::group(),
            consumer,
            take,
            records: delivery.records.iter().map(|record| record.id).collect(),
            delay_ms: 500,
        };
        replica
            .ask(Body::NackRecords(nack))
            .expect("it was delivered");
    }
    let waiting_count = usize::try_from(group(&replica).waiting_count());
    assert_eq!(waiting_count, Ok(RECORDS_COUNT));
    replica.now_ms += 1_000;
    fire(&mut replica);
    assert!(replica.rows <= 4, "{} rows", replica.rows);
}

#[test]
fn a_dead_letter_is_lost_where_no_stream_for_it_may_be_created() {
    let mut replica = replica();
    let streams_max = (STREAMS_MAX + DEAD_LETTER_STREAMS_MAX) as u64;
    let mut writes = Writes::new();
    writes.put(
        &encode_key::<StreamCounts>(&Namespace::default_namespace()),
        &encode_record::<StreamCounts>(&streams_max),
    );
    replica.store.write(&writes);
    replica.now_ms += 30_000;
    fire(&mut replica);
    let group = group(&replica);
    assert_eq!((group.dead_count, group.lost_count), (0, 16));
    assert_eq!(invariants::rows::<Streams>(&replica.store, &()).len(), 1);
}

/// A definition whose trigger reads through a group.
fn with_trigger(group: &str, version: usize) -> Body {
    let text = format!(
        "define order {version}\n trigger orders group={group}\n start: wait go -> success=flo.Completed"
    );
    Body::CreateDefinition(Box::new(CreateDefinition {
        definition: define(&text),
        source: String::new(),
        make_latest: true,
    }))
}

fn has_group(replica: &Replica, name: &str) -> bool {
    let names = invariants::rows::<GroupNames>(&replica.store, &());
    names.iter().any(|((_, found), _)| found.as_str() == name)
}

#[test]
fn a_stream_full_of_groups_gives_up_those_that_triggers_created_and_left() {
    let mut replica = Replica::new();
    let append = append(samples::name("orders"), 1);
    replica.ask(Body::AppendRecords(append)).expect("accepted");
    let named = |name: &str| GroupRef {
        stream: samples::name("orders"),
        group: samples::name(name),
    };
    let create = |name: &str| {
        let new = NewGroup {
            settings: GroupSettings::default(),
            start: StreamPosition::Id(RecordId::START),
        };
        let group = named(name);
        Body::CreateGroup(CreateGroup { group, new })
    };
    replica.ask(create("callers")).expect("accepted");
    replica.ask(with_trigger("callers", 0)).expect("accepted");
    let renames_count = GROUPS_MAX as usize + 10;
    for version in 1..=renames_count {
        replica.now_ms += 1;
        let group = format!("g{version}");
        replica
            .ask(with_trigger(&group, version))
            .expect("accepted");
        if version == 2 {
            // A caller uses the group that the trigger has left.
            replica.ask(create("g1")).expect("accepted");
        }
    }
    invariants::check(&replica.store);
    let names = invariants::rows::<GroupNames>(&replica.store, &());
    assert_eq!(names.len(), GROUPS_MAX as usize);
    assert!(has_group(&replica, "callers") && has_group(&replica, "g1"));
    assert!(!has_group(&replica, "g2") && has_group(&replica, "g20"));

    // An earlier revision continues where it was; no group that is used is given up.
    let position = |replica: &Replica| {
        let groups = invariants::rows::<Groups>(&replica.store, &());
        let found = groups
            .into_iter()
            .find(|(_, group)| group.name.as_str() == "g20");
        found.expect("it was kept").0
    };
    let before = position(&replica);
    replica.ask(with_trigger("g20", 20)).expect("accepted");
    assert_eq!(position(&replica), before);
    let mut created_count = 0;
    while replica.ask(create(&format!("c{created_count}"))).is_ok() {
        created_count += 1;
    }
    // The trigger's own group and two that callers use stay.
    assert_eq!(created_count, GROUPS_MAX - 3);
    invariants::check(&replica.store);
}
