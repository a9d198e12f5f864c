//! Bugs that a script plants and fixes.

use super::line::Line;
use super::world::World;
use crate::invariants;
use flotilla_engine::definition::{Definition, StepIndex};
use flotilla_engine::ids::{
    ActionRunNumber, GroupNumber, Namespace, RunNumber, StreamNumber, WorkerId, WorkflowName,
};
use flotilla_engine::rows::{
    ActionRuns, Activations, DefinitionNumber, DefinitionRecord, Definitions, GroupPartition,
    Groups, PartitionRecord, PayloadRef, Payloads, Quarantine, QuarantineRecord, QuarantinedKind,
    Runs, StoredPayload, StreamRecord, Streams, TimerKind, Timers, WorkerActivities, Workflows,
};

/// What was there before the damage.
pub(super) enum Damage {
    Run(RunNumber, Vec<(u64, StepIndex)>),
    Definition(DefinitionNumber, Box<DefinitionRecord>),
    Group(GroupNumber, Vec<GroupPartition>),
    /// The records that the stream does not know of, and its partitions.
    Stream(StreamNumber, u64, Vec<PartitionRecord>),
    Payload(PayloadRef, StoredPayload),
}

/// Plants a bug; `mend` fixes all planted bugs.
pub(super) const VERBS: [&str; 10] = [
    "damage",
    "damage-steps",
    "damage-schedule",
    "damage-trigger",
    "damage-group",
    "damage-stream",
    "damage-partitions",
    "damage-input",
    "damage-worker",
    "forget",
];

/// Plants the bug that a line names; false for any other line.
pub(super) fn plant(world: &mut World, verb: &str, line: &mut Line) -> bool {
    let damage = match verb {
        "damage" => run(world, &line.word()),
        "damage-steps" => definition(world, &line.word(), |one| one.steps.clear()),
        "damage-schedule" => definition(world, &line.word(), |one| one.schedule = None),
        "damage-trigger" => definition(world, &line.word(), |one| one.triggers.clear()),
        "damage-group" => group(world, &line.word()),
        "damage-stream" => stream(world, &line.word(), |one| one.record_count = 0),
        "damage-partitions" => stream(world, &line.word(), |one| one.partitions.clear()),
        "damage-input" => input(world, &line.word()),
        "damage-worker" => {
            worker(world, &line.word());
            return true;
        }
        "forget" => {
            let number = world.run_number(&line.word());
            world.plant::<Runs>(&number, None);
            return true;
        }
        "mend" => {
            mend(world);
            return true;
        }
        _ => return false,
    };
    world.damages.push(damage);
    true
}

/// The run stands on a step that its definition does not have.
fn run(world: &mut World, id: &str) -> Damage {
    let number = world.run_number(id);
    let mut steps = Vec::new();
    for (key, mut active) in invariants::rows::<Activations>(&world.store, &number) {
        steps.push((
            active.number,
            std::mem::replace(&mut active.step, StepIndex(999)),
        ));
        world.plant::<Activations>(&key, Some(&active));
    }
    Damage::Run(number, steps)
}

/// The latest revision lacks something that its validation saw.
fn definition(world: &mut World, workflow: &str, damage: impl Fn(&mut Definition)) -> Damage {
    let name = WorkflowName::new(workflow).expect("a workflow name");
    let key = (Namespace::default_namespace(), name);
    let number = world.read::<Workflows>(&key).expect("the workflow").latest;
    let before = world.read::<Definitions>(&number).expect("its latest");
    let mut record = before.clone();
    damage(&mut record.definition);
    world.plant::<Definitions>(&number, Some(&record));
    Damage::Definition(number, Box::new(before))
}

/// The group of this name knows of no partition.
fn group(world: &mut World, name: &str) -> Damage {
    let mut groups = world.rows::<Groups>().into_iter();
    let found = groups.find(|(_, group)| group.name.as_str() == name);
    let (number, mut group) = found.expect("the group exists");
    let partitions = std::mem::take(&mut group.partitions);
    world.plant::<Groups>(&number, Some(&group));
    Damage::Group(number, partitions)
}

/// The stream of this name does not know what it holds.
fn stream(world: &mut World, name: &str, damage: impl Fn(&mut StreamRecord)) -> Damage {
    let mut streams = world.rows::<Streams>().into_iter();
    let found = streams.find(|(_, stream)| stream.name.as_str() == name);
    let (number, before) = found.expect("the stream exists");
    let mut stream = before.clone();
    damage(&mut stream);
    world.plant::<Streams>(&number, Some(&stream));
    let unknown = before.record_count - stream.record_count;
    Damage::Stream(number, unknown, before.partitions)
}

/// The input of an action run is gone.
fn input(world: &mut World, id: &str) -> Damage {
    let number = ActionRunNumber::from_id(id).expect("an action run's id");
    let record = world.read::<ActionRuns>(&number).expect("it exists");
    let input = world.read::<Payloads>(&record.input).expect("its input");
    world.plant::<Payloads>(&record.input, None);
    Damage::Payload(record.input, input)
}

/// As if the turn of the worker's timer had panicked: no state that a turn could meet makes it.
fn worker(world: &mut World, id: &str) {
    let key = (
        Namespace::default_namespace(),
        WorkerId::new(id).expect("a worker id"),
    );
    let number = world
        .read::<WorkerActivities>(&key)
        .expect("the worker")
        .number
        .0;
    let timers = world.timers().into_iter();
    let mut own =
        timers.filter(|timer| (timer.kind, timer.subject) == (TimerKind::WorkerSilence, number));
    let timer = own.next().expect("the worker is watched");
    world.plant::<Timers>(&timer, None);
    let record = QuarantineRecord {
        at_ms: world.now_ms(),
        raft_index: 0,
    };
    world.plant::<Quarantine>(&(QuarantinedKind::Worker, number), Some(&record));
}

/// Puts back what was there before, beside what has changed since.
fn mend(world: &mut World) {
    for damage in std::mem::take(&mut world.damages).into_iter().rev() {
        match damage {
            Damage::Run(number, steps) => {
                for (key, mut active) in invariants::rows::<Activations>(&world.store, &number) {
                    let before = steps.iter().find(|(number, _)| *number == active.number);
                    active.step = before.map_or(active.step, |(_, step)| *step);
                    world.plant::<Activations>(&key, Some(&active));
                }
            }
            Damage::Definition(number, before) => {
                world.plant::<Definitions>(&number, Some(&before));
            }
            Damage::Group(number, partitions) => {
                if let Some(mut group) = world.read::<Groups>(&number) {
                    group.partitions = partitions;
                    world.plant::<Groups>(&number, Some(&group));
                }
            }
            Damage::Stream(number, unknown, partitions) => {
                if let Some(mut stream) = world.read::<Streams>(&number) {
                    stream.record_count += unknown;
                    if stream.partitions.is_empty() {
                        stream.partitions = partitions;
                    }
                    world.plant::<Streams>(&number, Some(&stream));
                }
            }
            Damage::Payload(reference, payload) => {
                world.plant::<Payloads>(&reference, Some(&payload));
            }
        }
    }
}
