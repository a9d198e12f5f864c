//! Parses commands on consumer groups and renders them.

use super::line::Line;
use super::show::{option, quarantined};
use super::stream::{record_in_words, stream};
use super::world::World;
use flotilla_engine::definition::GroupMode;
use flotilla_engine::ids::{ConsumerName, GroupName, Namespace, WorkerId};
use flotilla_engine::view::{self, DeliveredView, PendingState, PendingView};
use flotilla_engine::{
    AckRecords, Body, CreateGroup, DeleteGroup, GroupRef, GroupSettings, JoinGroup, LeaveGroup,
    NackRecords, NewGroup, RecordId, StreamPosition, TakeId, TakeRecords, TouchRecords,
};

/// `create-group S G mode=M timeout=MS max=N start=ID`, `join S G C incarnation=N worker=W again`
/// with `create` and the options of a group (the worker is named like the consumer by default),
/// `leave S G C incarnation=N`, `take S G C TAKE count=N incarnation=N` (by default of the process that has
/// joined), `ack S G C TAKE ID…`, `nack … delay=MS`, `keep … extend=MS`, `delete-group S G`. `every`
/// stands for the ids of what the take gave.
pub(super) fn command(world: &World, verb: &str, line: &mut Line) -> Option<Body> {
    Some(match verb {
        "create-group" => Body::CreateGroup(CreateGroup {
            group: group(line),
            new: new_group(line),
        }),
        "join" => {
            let (group, consumer) = (group(line), consumer(line));
            let worker = line.option("worker");
            let worker = worker.unwrap_or_else(|| consumer.to_string());
            Body::JoinGroup(JoinGroup {
                group,
                consumer,
                incarnation: line.number("incarnation").unwrap_or(1),
                worker: WorkerId::new(worker).ok(),
                create: line.flag("create").then(|| new_group(line)),
                is_renewal: line.flag("again"),
            })
        }
        "leave" => Body::LeaveGroup(LeaveGroup {
            group: group(line),
            consumer: consumer(line),
            incarnation: line.number("incarnation"),
        }),
        "take" => Body::TakeRecords(taking(world, line).1),
        "ack" => {
            let (group, consumer, take, records) = delivered(world, line);
            Body::AckRecords(AckRecords {
                group,
                consumer,
                take,
                records,
            })
        }
        "nack" => {
            let (group, consumer, take, records) = delivered(world, line);
            Body::NackRecords(NackRecords {
                group,
                consumer,
                take,
                records,
                delay_ms: line.number("delay").unwrap_or(0),
            })
        }
        "keep" => {
            let (group, consumer, take, records) = delivered(world, line);
            Body::TouchRecords(TouchRecords {
                group,
                consumer,
                take,
                records,
                extend_ms: line.number("extend").expect("extend=MS"),
            })
        }
        "delete-group" => Body::DeleteGroup(DeleteGroup { group: group(line) }),
        _ => return None,
    })
}

fn new_group(line: &mut Line) -> NewGroup {
    let default = GroupSettings::default();
    let mode = match line.option("mode").as_deref() {
        None | Some("shared") => GroupMode::Shared,
        Some("exclusive") => GroupMode::Exclusive,
        Some("key_shared") => GroupMode::KeyShared,
        Some(other) => panic!("expected a mode, but found {other}"),
    };
    let ack_timeout_ms = line.number("timeout").unwrap_or(default.ack_timeout_ms());
    let max_deliveries = line.number("max").unwrap_or(default.max_deliveries());
    let settings = GroupSettings::new(mode, ack_timeout_ms, max_deliveries);
    let start = line.option("start").unwrap_or_else(|| "0-0".to_owned());
    NewGroup {
        settings: settings.expect("an ack timeout"),
        start: start
            .parse::<StreamPosition>()
            .expect("a place in a stream"),
    }
}

/// What a process asks for, and where.
type TakeRequest = (Namespace, TakeRecords);

/// `S G C TAKE count=N incarnation=N`
fn taking(world: &World, line: &mut Line) -> TakeRequest {
    let name = TakeName {
        group: group(line),
        consumer: consumer(line),
        take: TakeId(line.next_number()),
    };
    named(world, line, name)
}

/// What names a take in its namespace.
struct TakeName {
    group: GroupRef,
    consumer: ConsumerName,
    take: TakeId,
}

/// A take of the process that is named, else of the one that has joined.
fn named(world: &World, line: &mut Line, name: TakeName) -> TakeRequest {
    let TakeName {
        group,
        consumer,
        take,
    } = name;
    let namespace = line.namespace();
    let joined = view::consumers(&world.store, &namespace, &group);
    let mut joined = joined.expect("memory does not fail").into_iter();
    let joined = joined.find(|(name, _)| *name == consumer);
    let joined = joined.map_or(1, |(_, joined)| joined.incarnation);
    let taking = TakeRecords {
        group,
        consumer,
        incarnation: line.number("incarnation").unwrap_or(joined),
        take,
        count_max: line.number("count").unwrap_or(10),
    };
    (namespace, taking)
}

fn delivery(world: &World, request: &TakeRequest) -> Vec<DeliveredView> {
    let (namespace, taking) = request;
    let given = view::delivery(&world.store, namespace, taking);
    given.expect("memory does not fail")
}

fn delivered(world: &World, line: &mut Line) -> (GroupRef, ConsumerName, TakeId, Vec<RecordId>) {
    let (group, consumer) = (group(line), consumer(line));
    let take = TakeId(line.next_number());
    let records = if line.flag("every") {
        let name = TakeName {
            group: group.clone(),
            consumer: consumer.clone(),
            take,
        };
        let request = named(world, line, name);
        let given = delivery(world, &request);
        given.iter().map(|one| one.record.id).collect()
    } else {
        let mut ids = Vec::new();
        while let Some(id) = line.next() {
            ids.push(id.parse().expect("a record id"));
        }
        ids
    };
    (group, consumer, take, records)
}

pub(super) const QUESTIONS: [&str; 5] = ["group", "groups", "pending", "delivery", "has-records"];

/// `group S G`, `groups S`, `pending S G limit=N`, `delivery S G C TAKE`, `has-records S G C`
pub(super) fn answer(world: &World, verb: &str, line: &mut Line) -> Option<String> {
    let answer = match verb {
        "group" => show(world, line),
        "groups" => {
            let (namespace, stream) = (line.namespace(), stream(line));
            let page = view::groups(
                &world.store,
                &namespace,
                &stream,
                view::PageRange::first(100),
            );
            let groups = page.expect("memory does not fail").items;
            let describe = |one: &view::GroupView| format!("{} lag {}\n", one.name, one.lag);
            groups.iter().map(describe).collect()
        }
        "pending" => {
            let (namespace, group) = (line.namespace(), group(line));
            let limit = line.number("limit").unwrap_or(100);
            let pending = view::pending(&world.store, &namespace, &group, limit);
            let pending = pending.expect("memory does not fail");
            pending.iter().map(pending_in_words).collect()
        }
        "delivery" => {
            let given = delivery(world, &taking(world, line));
            let records = given.iter().map(|one| {
                let (attempt, expires_at_ms) = (one.attempt, one.expires_at_ms);
                let record = record_in_words(&one.record);
                format!("attempt {attempt} until {expires_at_ms}: {record}")
            });
            records.collect()
        }
        "has-records" => {
            let any_take = TakeName {
                group: group(line),
                consumer: consumer(line),
                take: TakeId(0),
            };
            let (namespace, taking) = named(world, line, any_take);
            let now_ms = world.last_ms();
            let has_records = view::has_records(&world.store, &namespace, &taking, now_ms);
            format!("{}\n", has_records.expect("memory does not fail"))
        }
        _ => return None,
    };
    Some(answer)
}

fn show(world: &World, line: &mut Line) -> String {
    let (namespace, name) = (line.namespace(), group(line));
    let found = view::group(&world.store, &namespace, &name).expect("memory does not fail");
    let Some(found) = found else {
        return "none\n".to_owned();
    };
    let record = &found.record;
    let mut out = format!(
        "{:?}{} lag {} pending {} acked {} dead {} lost {}{}\n",
        record.settings.mode(),
        quarantined(found.is_quarantined),
        found.lag,
        found.pending_count,
        record.acked_count,
        record.dead_count,
        record.lost_count,
        option(" timer at ", &record.timer_due_ms)
    );
    for (partition, own) in record.partitions.iter().enumerate() {
        out += &format!(
            "  partition {partition} next {} in flight {} waiting {}{}\n",
            own.next,
            own.in_flight_count,
            own.waiting_count,
            option(" of ", &own.assigned)
        );
    }
    let consumers = view::consumers(&world.store, &namespace, &name);
    for (name, consumer) in consumers.expect("memory does not fail") {
        let (number, last_heartbeat_at_ms) = (consumer.number, consumer.last_heartbeat_at_ms);
        out += &format!("  {name} is {number}, heard {last_heartbeat_at_ms}\n");
    }
    out
}

fn pending_in_words(pending: &PendingView) -> String {
    let (id, partition, attempts) = (pending.id, pending.partition, pending.attempts);
    let state = match &pending.state {
        PendingState::InFlight {
            consumer,
            take,
            expires_at_ms,
        } => format!("with {consumer} take {} until {expires_at_ms}", take.0),
        PendingState::Waiting { due_ms } => format!("waits until {due_ms}"),
    };
    format!("{id} in {partition} attempts {attempts} {state}\n")
}

fn group(line: &mut Line) -> GroupRef {
    GroupRef {
        stream: stream(line),
        group: GroupName::new(line.word()).expect("a group's name"),
    }
}

fn consumer(line: &mut Line) -> ConsumerName {
    ConsumerName::new(line.word()).expect("a consumer's name")
}
