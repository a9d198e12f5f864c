//! Triggers: their groups and due rows are consistent, and each record starts one run.

use super::{read, rows};
use flotilla_engine::definition::Trigger;
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

type TriggerKey = (Namespace, WorkflowName);
type Source = (Namespace, StreamName);

pub(super) fn check(store: &MemoryStore) {
    let triggers = rows::<Triggers>(store, &());
    let (mut sources, mut due) = (BTreeSet::new(), BTreeSet::new());
    let mut groups: BTreeMap<GroupNumber, TriggerKey> = BTreeMap::new();
    for (key, record) in &triggers {
        let workflow = read::<Workflows>(store, key).expect("a trigger has a workflow");
        let latest = read::<Definitions>(store, &workflow.latest).expect("a latest revision");
        let trigger = latest.definition.trigger;
        assert_eq!(record.live.is_some(), trigger.is_some(), "{key:?}");
        let (Some(live), Some(trigger)) = (record.live.clone(), trigger) else {
            continue;
        };
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
        groups.extend(live.group.map(|number| (number, key.clone())));
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
                .map(|due_ms| (due_ms, key.0.clone(), key.1.clone())),
        );
        sources.insert((source.0, source.1, key.0.clone(), key.1.clone()));
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

/// Each record starts at most one run, and all are counted.
fn check_runs(store: &MemoryStore, triggers: &[(TriggerKey, TriggerRecord)]) {
    let runs: BTreeMap<RunNumber, RunRecord> = rows::<Runs>(store, &()).into_iter().collect();
    let mut counts: BTreeMap<TriggerKey, (u64, u64)> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for ((number, _), record) in rows::<History>(store, &()) {
        for event in record.events {
            let EventKind::TriggerStarted { partition, records } = event.kind else {
                continue;
            };
            // What is left of a forgotten run goes with the next sweeps (W4).
            let Some(run) = runs.get(&number) else {
                continue;
            };
            let TriggeredBy::Trigger { first } = run.triggered_by else {
                panic!("{} was not triggered", run.id);
            };
            assert_eq!(records.first(), Some(&first), "{}", run.id);
            assert!(records.is_sorted(), "{}", run.id);
            let revision = read::<Definitions>(store, &run.definition).expect("a revision");
            let trigger = revision.definition.trigger.expect("of a trigger");
            let key = (run.namespace.clone(), revision.definition.name);
            let count = counts.entry(key.clone()).or_default();
            count.0 += 1;
            count.1 += records.len() as u64;
            let namespace = trigger.namespace.unwrap_or_else(|| run.namespace.clone());
            let source = (namespace, trigger.stream);
            // Records from before a group was deleted and recreated may be delivered again.
            let began_ms = began_ms(store, &source, &trigger.consumer_group);
            if began_ms.is_none_or(|began_ms| run.started_at_ms <= began_ms) {
                continue;
            }
            for id in records {
                let record = (
                    source.clone(),
                    trigger.consumer_group.clone(),
                    partition,
                    id,
                );
                assert!(seen.insert(record), "{id} started two runs");
            }
        }
    }
    let is_any_forgotten =
        read::<Cluster>(store, &()).is_some_and(|cluster| cluster.run_count > runs.len() as u64);
    for (key, record) in triggers {
        let found = counts.remove(key).unwrap_or_default();
        let counted = (record.run_count, record.record_count);
        assert!(found == counted || is_any_forgotten, "the runs of {key:?}");
    }
    assert!(counts.is_empty(), "runs of no trigger: {counts:?}");
}

/// When a group was created, in milliseconds.
fn began_ms(store: &MemoryStore, source: &Source, name: &GroupName) -> Option<u64> {
    let stream = read::<StreamNames>(store, source)?;
    let number = read::<GroupNames>(store, &(stream, name.clone()))?;
    read::<Groups>(store, &number).map(|group| group.created_at_ms)
}
