//! The cost of a consumer group's timer.

use crate::replica::Replica;
use crate::{invariants, samples};
use flotilla_engine::bytes::Bytes;
use flotilla_engine::definition::GroupMode;
use flotilla_engine::ids::Namespace;
use flotilla_engine::limits::{DEAD_LETTER_STREAMS_MAX, STREAMS_MAX};
use flotilla_engine::store::Writes;
use flotilla_engine::tables::{
    GroupRecord, Groups, StreamCounts, Streams, TimerKind, Timers, encode_key, encode_record,
};
use flotilla_engine::{
    AppendRecords, Body, CreateGroup, FireTimer, GroupSettings, JoinGroup, NewGroup, NewRecord,
    RecordId, Reply, StreamPosition, TakeId, TakeRecords, reply,
};
use std::collections::BTreeMap;

/// Records in flight, each in a separate delivery.
const RECORDS_COUNT: usize = 1_000;

/// A replica whose group has given out every record once, which is as often as it may.
fn replica() -> Replica {
    let mut replica = Replica::new();
    let record = NewRecord {
        payload: Bytes::from("{}"),
        headers: BTreeMap::new(),
        key: None,
        partition: None,
    };
    let append = AppendRecords {
        stream: samples::stream(),
        records: vec![record; RECORDS_COUNT],
    };
    replica.ask(Body::AppendRecords(append)).expect("accepted");
    let new = NewGroup {
        settings: GroupSettings::new(GroupMode::Shared, 30_000, 1).expect("half a minute"),
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
fn burials_go_on_where_the_last_piece_ended_and_look_at_no_more_than_they_bury() {
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
