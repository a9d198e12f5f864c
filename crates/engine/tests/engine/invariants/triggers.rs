//! Triggers: their groups and due rows are consistent, and each record starts one run.

use super::{read, rows};
use flotilla_engine::TriggerKey;
use flotilla_engine::definition::{Trigger, TriggerIndex};
use flotilla_engine::ids::{
    GroupName, GroupNumber, Namespace, RunNumber, StreamName, WorkflowName,
};
use flotilla_engine::rows::{
    Cluster, Definitions, EventKind, GroupNames, GroupRecord, Groups, History, LiveTrigger,
    Quarantine, QuarantinedKind, Records, RunRecord, Runs, StreamNames, StreamRecord, Streams,
    TriggerRecord, TriggeredBy, Triggers, TriggersByStream, TriggersDue, Workflows,
};
use flotilla_engine::store::MemoryStore;
use std::collections::{BTreeMap, BTreeSet};

type Owner = (Namespace, WorkflowName);
type Source = (Namespace, StreamName);

pub(super) fn check(store: &MemoryStore) {
    let triggers = rows::<Triggers>(store, &());
    let (mut sources, mut due) = (BTreeSet::new(), BTreeSet::new());
    let mut groups: BTreeMap<GroupNumber, Owner> = BTreeMap::new();
    check_lists(store, &triggers);
    for (key, record) in &triggers {
        let owner = (key.0.clone(), key.1.clone());
        let workflow = read::<Workflows>(store, &owner).expect("a trigger has a workflow");
        let latest = read::<Definitions>(store, &workflow.latest).expect("a latest revision");
        let trigger = latest.definition.trigger(key.2).expect("a trigger").clone();
        let live = record.live.clone();
        assert_eq!(live.definition, workflow.latest, "{key:?}");
        let namespace = trigger.namespace.clone().unwrap_or_else(|| key.0.clone());
        let source = (namespace, trigger.stream.clone());
        let checked = Live {
            key,
            live: &live,
            trigger: &trigger,
            source: &source,
            is_enabled: workflow.is_enabled,
        };
        let group = check_group(store, &checked);
        groups.extend(live.group.map(|number| (number, owner)));
        let quarantined = (QuarantinedKind::Trigger, live.definition.0);
        let is_quarantined = read::<Quarantine>(store, &quarantined).is_some();
        let fires = workflow.is_enabled && !is_quarantined;
        let expected = group
            .filter(|_| fires)
            .and_then(|group| due_ms(store, &group, &trigger))
            .map(|due_ms| due_ms.max(live.waits_until_ms.unwrap_or(0)));
        assert_eq!(live.due_ms, expected, "when {key:?} is due");
        due.extend(
            live.due_ms
                .map(|due_ms| (due_ms, key.0.clone(), key.1.clone(), key.2)),
        );
        sources.insert((source.0, source.1, key.0.clone(), key.1.clone(), key.2));
    }
    let found: BTreeSet<_> = rows::<TriggersByStream>(store, &())
        .into_iter()
        .map(|row| row.0)
        .collect();
    assert_eq!(found, sources, "the triggers of streams");
    let found: BTreeSet<_> = rows::<TriggersDue>(store, &())
        .into_iter()
        .map(|row| row.0)
        .collect();
    assert_eq!(found, due, "the triggers that are due");
    for (number, group) in rows::<Groups>(store, &()) {
        if !group.is_deleted {
            assert_eq!(
                groups.get(&number),
                group.trigger.as_ref().map(|trigger| &trigger.workflow),
                "{}",
                group.name
            );
        }
    }
    check_runs(store, &triggers);
}

/// Each trigger of each latest revision has its row.
fn check_lists(store: &MemoryStore, triggers: &[(TriggerKey, TriggerRecord)]) {
    let mut expected = BTreeSet::new();
    for ((namespace, workflow), record) in rows::<Workflows>(store, &()) {
        let latest = read::<Definitions>(store, &record.latest).expect("a latest revision");
        let indexes = (0..).map(TriggerIndex).zip(&latest.definition.triggers);
        expected.extend(indexes.map(|(index, _)| (namespace.clone(), workflow.clone(), index)));
    }
    let found: BTreeSet<_> = triggers.iter().map(|(key, _)| key.clone()).collect();
    assert_eq!(found, expected, "the triggers of the latest revisions");
}

/// A live trigger, with what its definition and its workflow say.
struct Live<'a> {
    key: &'a TriggerKey,
    live: &'a LiveTrigger,
    trigger: &'a Trigger,
    source: &'a Source,
    is_enabled: bool,
}

/// The group is there if the stream is, belongs to the trigger, and holds while it is enabled.
fn check_group(store: &MemoryStore, checked: &Live<'_>) -> Option<GroupRecord> {
    let Live {
        key,
        live,
        trigger,
        source,
        is_enabled,
    } = *checked;
    let stream = read::<StreamNames>(store, source);
    assert_eq!(live.group.is_some(), stream.is_some(), "{key:?}");
    let group = read::<Groups>(store, &live.group?).expect("a live trigger's group");
    assert!(!group.is_deleted, "{key:?}");
    assert_eq!(Some(group.stream), stream, "{key:?}");
    assert_eq!(group.name, trigger.consumer_group, "{key:?}");
    assert_eq!(group.settings.mode(), trigger.consumption, "{key:?}");
    assert_eq!(group.holds_retention(), is_enabled, "{key:?}");
    assert_eq!(
        (group.consumer_count, group.pending_count()),
        (0, 0),
        "{key:?}"
    );
    Some(group)
}

/// When there is something to fire, by the records themselves.
fn due_ms(store: &MemoryStore, group: &GroupRecord, trigger: &Trigger) -> Option<u64> {
    let stream: StreamRecord = read::<Streams>(store, &group.stream).expect("its stream");
    let (mut whole, mut flush) = (Vec::new(), Vec::new());
    for (partition, (own, found)) in (0_u32..).zip(group.partitions.iter().zip(&stream.partitions))
    {
        let ids = rows::<Records>(store, &(group.stream, partition)).into_iter();
        let ids: Vec<_> = ids
            .map(|((_, _, id), _)| id)
            .filter(|id| *id >= own.next)
            .collect();
        let lag = own.lag(found);
        assert_eq!(
            lag,
            ids.len() as u64,
            "the lag of {} {partition}",
            group.name
        );
        let Some(first) = ids.first() else { continue };
        flush.push(first.ms + trigger.batch_timeout_ms);
        if lag >= u64::from(trigger.batch_size) {
            whole.push(own.next.max(found.front.expect("records")).ms);
        }
    }
    whole.into_iter().min().or_else(|| flush.into_iter().min())
}

/// Each record starts at most one run per trigger, and all are counted.
fn check_runs(store: &MemoryStore, triggers: &[(TriggerKey, TriggerRecord)]) {
    let runs: BTreeMap<RunNumber, RunRecord> = rows::<Runs>(store, &()).into_iter().collect();
    let mut started: BTreeMap<(Owner, Identity), Vec<Started>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for ((number, _), record) in rows::<History>(store, &()) {
        for event in record.events {
            let EventKind::TriggerStarted {
                trigger,
                partition,
                records,
            } = event.kind
            else {
                continue;
            };
            // What is left of a forgotten run goes with the next sweeps (W4).
            let Some(run) = runs.get(&number) else {
                continue;
            };
            let first = *records.first().expect("a run of a trigger has records");
            let expected = TriggeredBy::Trigger { trigger, first };
            assert_eq!(run.triggered_by, expected, "{}", run.id);
            assert!(records.is_sorted(), "{}", run.id);
            let revision = read::<Definitions>(store, &run.definition).expect("a revision");
            let definition = &revision.definition;
            let trigger = definition.trigger(trigger).expect("a trigger");
            let owner = (run.namespace.clone(), definition.name.clone());
            let identity = identity(&run.namespace, trigger);
            let of_trigger = started.entry((owner, identity.clone())).or_default();
            of_trigger.push(Started {
                at_ms: run.started_at_ms,
                record_count: records.len() as u64,
            });
            // Records from before a group was deleted and recreated may be delivered again.
            let began_ms = began_ms(store, &identity);
            if began_ms.is_none_or(|began_ms| run.started_at_ms <= began_ms) {
                continue;
            }
            for id in records {
                let record = (identity.clone(), partition, id);
                assert!(seen.insert(record), "{id} started two runs");
            }
        }
    }
    let is_any_forgotten =
        read::<Cluster>(store, &()).is_some_and(|cluster| cluster.run_count > runs.len() as u64);
    for ((namespace, workflow, index), record) in triggers {
        let revision = read::<Definitions>(store, &record.live.definition).expect("a revision");
        let trigger = revision.definition.trigger(*index).expect("a trigger");
        let key = (
            (namespace.clone(), workflow.clone()),
            identity(namespace, trigger),
        );
        let started = started.get(&key).map_or(&[][..], Vec::as_slice);
        let counts = &record.counts;
        let since = |is_counted: &dyn Fn(u64) -> bool| {
            let counted = started.iter().filter(|one| is_counted(one.at_ms));
            counted.fold((0, 0), |(runs, records), one| {
                (runs + 1, records + one.record_count)
            })
        };
        let counted = (counts.run_count, counts.record_count);
        // Within the millisecond in which the trigger came back, it may have started runs before that.
        let (least, most) = (
            since(&|at_ms| at_ms > counts.since_ms),
            since(&|at_ms| at_ms >= counts.since_ms),
        );
        let is_within = least.0 <= counted.0 && counted.0 <= most.0;
        let is_within = is_within && least.1 <= counted.1 && counted.1 <= most.1;
        assert!(
            is_within || is_any_forgotten,
            "the runs of {key:?}: {counted:?}"
        );
    }
}

/// A run that a trigger started.
struct Started {
    at_ms: u64,
    record_count: u64,
}

/// What makes triggers of several revisions the same one.
type Identity = (Source, GroupName);

fn identity(own: &Namespace, trigger: &Trigger) -> Identity {
    let source = (trigger.namespace(own).clone(), trigger.stream.clone());
    (source, trigger.consumer_group.clone())
}

/// When a group was created, in milliseconds.
fn began_ms(store: &MemoryStore, (source, name): &Identity) -> Option<u64> {
    let stream = read::<StreamNames>(store, source)?;
    let number = read::<GroupNames>(store, &(stream, name.clone()))?;
    read::<Groups>(store, &number).map(|group| group.created_at_ms)
}
