//! Moves on consumer groups.

use super::data::stream_name;
use super::player::pick;
use crate::invariants::{read, rows};
use flotilla_engine::definition::GroupMode;
use flotilla_engine::ids::{ConsumerName, GroupName};
use flotilla_engine::rows::{Deliveries, Groups, Streams};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{
    AckRecords, Body, CreateGroup, DeleteGroup, GroupRef, GroupSettings, JoinGroup, LeaveGroup,
    NackRecords, NewGroup, RecordId, StreamPosition, TakeId, TakeRecords, TouchRecords,
};
use proptest::prelude::*;

const GROUPS: [&str; 2] = ["g", "h"];
/// One of them is named after a worker.
const CONSUMERS: [&str; 3] = ["c", "d", "w0"];

/// A command on consumer groups; `pick` chooses one of the deliveries that there are.
#[derive(Clone, Debug)]
pub(in crate::property) enum GroupIntent {
    Create(GroupPlan),
    Join {
        plan: GroupPlan,
        consumer: u8,
        incarnation: u8,
        is_renewal: bool,
    },
    Leave {
        plan: GroupPlan,
        consumer: u8,
    },
    Take {
        plan: GroupPlan,
        consumer: u8,
        incarnation: u8,
        take: u64,
        count_max: u32,
    },
    Ack {
        pick: u8,
        is_whole: bool,
    },
    Nack {
        pick: u8,
        is_whole: bool,
        delay_ms: u64,
    },
    Keep {
        pick: u8,
        extend_ms: u64,
    },
    Delete(GroupPlan),
}

/// Which group, and how it is created.
#[derive(Clone, Copy, Debug)]
pub(in crate::property) struct GroupPlan {
    stream: u8,
    group: u8,
    mode: u8,
}

pub(super) fn intents() -> impl Strategy<Value = GroupIntent> {
    let delay_ms = prop_oneof![Just(0), 0..400_u64];
    prop_oneof![
        1 => plans().prop_map(GroupIntent::Create),
        4 => (plans(), 0..3_u8, incarnations(), any::<bool>()).prop_map(
            |(plan, consumer, incarnation, is_renewal)| {
                GroupIntent::Join { plan, consumer, incarnation, is_renewal }
            }
        ),
        1 => (plans(), 0..3_u8).prop_map(|(plan, consumer)| GroupIntent::Leave { plan, consumer }),
        8 => (plans(), 0..3_u8, incarnations(), 0..3_u64, 1..4_u32)
            .prop_map(|(plan, consumer, incarnation, take, count_max)| {
                GroupIntent::Take { plan, consumer, incarnation, take, count_max }
            }),
        4 => (any::<u8>(), any::<bool>())
            .prop_map(|(pick, is_whole)| GroupIntent::Ack { pick, is_whole }),
        4 => (any::<u8>(), any::<bool>(), delay_ms)
            .prop_map(|(pick, is_whole, delay_ms)| GroupIntent::Nack { pick, is_whole, delay_ms }),
        2 => (any::<u8>(), 0..2_000_u64)
            .prop_map(|(pick, extend_ms)| GroupIntent::Keep { pick, extend_ms }),
        1 => plans().prop_map(GroupIntent::Delete),
    ]
}

/// Two processes of each name, the first one most of the time.
fn incarnations() -> impl Strategy<Value = u8> {
    prop_oneof![2 => Just(0_u8), 1 => Just(1_u8)]
}

fn plans() -> impl Strategy<Value = GroupPlan> {
    (0..2_u8, 0..8_u8, 0..3_u8).prop_map(|(stream, group, mode)| {
        let group = u8::from(group == 7);
        GroupPlan {
            stream,
            group,
            mode,
        }
    })
}

/// The command that an intent stands for now.
pub(super) fn body(store: &MemoryStore, intent: &GroupIntent) -> Body {
    match intent {
        GroupIntent::Create(plan) => Body::CreateGroup(CreateGroup {
            group: name(plan),
            new: new_group(plan),
        }),
        GroupIntent::Join {
            plan,
            consumer,
            incarnation,
            is_renewal,
        } => Body::JoinGroup(JoinGroup {
            group: name(plan),
            consumer: consumer_name(*consumer),
            incarnation: u64::from(*incarnation),
            worker: None,
            create: Some(new_group(plan)),
            is_renewal: *is_renewal,
        }),
        GroupIntent::Leave { plan, consumer } => Body::LeaveGroup(LeaveGroup {
            group: name(plan),
            consumer: consumer_name(*consumer),
            incarnation: None,
        }),
        GroupIntent::Take {
            plan,
            consumer,
            incarnation,
            take,
            count_max,
        } => Body::TakeRecords(TakeRecords {
            group: name(plan),
            consumer: consumer_name(*consumer),
            incarnation: u64::from(*incarnation),
            take: TakeId(*take),
            count_max: *count_max,
        }),
        GroupIntent::Delete(plan) => Body::DeleteGroup(DeleteGroup { group: name(plan) }),
        GroupIntent::Ack { .. } | GroupIntent::Nack { .. } | GroupIntent::Keep { .. } => {
            on_delivered(store, intent)
        }
    }
}

fn on_delivered(store: &MemoryStore, intent: &GroupIntent) -> Body {
    match intent {
        GroupIntent::Ack { pick, is_whole } => {
            let given = delivered(store, *pick, *is_whole);
            Body::AckRecords(AckRecords {
                group: given.group,
                consumer: given.consumer,
                take: given.take,
                records: given.records,
            })
        }
        GroupIntent::Nack {
            pick,
            is_whole,
            delay_ms,
        } => {
            let given = delivered(store, *pick, *is_whole);
            Body::NackRecords(NackRecords {
                group: given.group,
                consumer: given.consumer,
                take: given.take,
                records: given.records,
                delay_ms: *delay_ms,
            })
        }
        GroupIntent::Keep { pick, extend_ms } => {
            let given = delivered(store, *pick, false);
            Body::TouchRecords(TouchRecords {
                group: given.group,
                consumer: given.consumer,
                take: given.take,
                records: given.records,
                extend_ms: *extend_ms,
            })
        }
        other => panic!("{other:?} is about something else"),
    }
}

struct Delivered {
    group: GroupRef,
    consumer: ConsumerName,
    take: TakeId,
    records: Vec<RecordId>,
}

/// One of the deliveries, whole or its first record; if there are no deliveries, one that never existed.
fn delivered(store: &MemoryStore, pick: u8, is_whole: bool) -> Delivered {
    let all = rows::<Deliveries>(store, &());
    let position = usize::from(pick) % all.len().max(1);
    let Some(((number, consumer, take), delivery)) = all.into_iter().nth(position) else {
        return Delivered {
            group: name(&GroupPlan {
                stream: pick % 2,
                group: 0,
                mode: 0,
            }),
            consumer: consumer_name(pick % 3),
            take: TakeId(99),
            records: vec![RecordId::START],
        };
    };
    let group = read::<Groups>(store, &number).expect("a delivery has a group");
    let stream = read::<Streams>(store, &group.stream);
    let count = if is_whole { usize::MAX } else { 1 };
    let ids = delivery.records.iter().map(|record| record.id);
    Delivered {
        group: GroupRef {
            stream: stream.map_or_else(|| stream_name(0), |stream| stream.name),
            group: group.name,
        },
        consumer,
        take,
        records: ids.take(count).collect(),
    }
}

fn name(plan: &GroupPlan) -> GroupRef {
    GroupRef {
        stream: stream_name(plan.stream),
        group: GroupName::new(pick(&GROUPS, plan.group)).expect("a name"),
    }
}

fn new_group(plan: &GroupPlan) -> NewGroup {
    let modes = [
        GroupMode::Shared,
        GroupMode::Exclusive,
        GroupMode::KeyShared,
    ];
    NewGroup {
        settings: GroupSettings::new(modes[usize::from(plan.mode)], 1_000, 2).expect("a second"),
        start: StreamPosition::Id(RecordId::START),
    }
}

fn consumer_name(position: u8) -> ConsumerName {
    ConsumerName::new(pick(&CONSUMERS, position)).expect("a name")
}
