//! One value of everything about keys, namespaces, streams and groups.

use super::{labels, workflow};
use flotilla_engine::bytes::Bytes;
use flotilla_engine::definition::{GroupMode, TriggerIndex};
use flotilla_engine::ids::{
    ActionRunNumber, ConsumerName, GroupName, KvKey, PartitionKey, StreamName,
};
use flotilla_engine::rows::{DefinitionNumber, QuarantinedKind, Retention, StreamSettings};
use flotilla_engine::{
    AckRecords, AddInfo, AddTaskInfo, AppendRecords, BatchedRecord, Body, CancelActionRun,
    CompleteStep, CreateGroup, CreateNamespace, CreateStream, DecideApproval, DeleteGroup,
    DeleteKey, DeleteNamespace, DeleteStream, DeleteWorkflow, FireTrigger, GroupRef, GroupSettings,
    JoinGroup, LeaveGroup, NackRecords, NewGroup, NewRecord, RecordId, ReleaseQuarantined,
    ResumeRevision, ResumeRun, SetCondition, SetKey, StreamPosition, SweepKeys, TakeId,
    TakeRecords, TouchRecords, TriggerBatch, TrimStream, TrimTo, VersionChoice,
};
use std::num::{NonZeroU32, NonZeroU64};

/// One command of each kind, in the order of the enum.
pub(super) fn bodies() -> Vec<Body> {
    let mut bodies = on_keys();
    bodies.extend(on_streams());
    bodies.extend(on_groups());
    bodies.push(fire_trigger());
    bodies.push(Body::ReleaseQuarantined(ReleaseQuarantined {
        kind: QuarantinedKind::Group,
        number: 7,
    }));
    bodies.push(Body::CancelActionRun(CancelActionRun {
        action_run: ActionRunNumber(7),
        reason: Some("by hand".to_owned()),
    }));
    bodies.push(Body::DeleteWorkflow(DeleteWorkflow {
        workflow: workflow(),
    }));
    bodies.push(Body::DecideApproval(DecideApproval {
        run_id: super::run_id(),
        selector: super::step_selector(),
        is_approved: true,
        comment: Some(super::comment()),
    }));
    bodies.push(Body::CompleteStep(CompleteStep {
        run_id: super::run_id(),
        selector: super::step_selector(),
        report: super::task_report(),
    }));
    bodies.push(Body::ResumeRun(ResumeRun {
        run_id: super::run_id(),
        from: Some(super::step()),
        revision: Some(ResumeRevision {
            version: VersionChoice::Version(super::version()),
            is_forced: true,
        }),
        metadata: Some(super::json()),
    }));
    bodies
}

pub(super) fn infos() -> [Body; 2] {
    [
        Body::AddInfo(AddInfo {
            run_id: super::run_id(),
            content: super::json(),
        }),
        Body::AddTaskInfo(AddTaskInfo {
            token: super::token(),
            content: super::json(),
        }),
    ]
}

pub(crate) fn kv_key() -> KvKey {
    KvKey::new("user/7").expect("a key")
}

pub(crate) fn stream() -> StreamName {
    StreamName::new("events").expect("a name")
}

pub(crate) fn partition_key() -> PartitionKey {
    PartitionKey::new("customer-7").expect("a key")
}

pub(crate) fn record_id() -> RecordId {
    RecordId {
        ms: 1_700_000_000_000,
        seq: 7,
    }
}

pub(crate) fn group() -> GroupRef {
    GroupRef {
        stream: stream(),
        group: GroupName::new("workers").expect("a name"),
    }
}

pub(crate) fn group_settings() -> GroupSettings {
    GroupSettings::new(GroupMode::KeyShared, 30_000, 10).expect("half a minute")
}

pub(crate) fn consumer() -> ConsumerName {
    ConsumerName::new("w1").expect("a name")
}

fn on_keys() -> Vec<Body> {
    vec![
        Body::SetKey(SetKey {
            key: kv_key(),
            value: Bytes::from("blue"),
            ttl_ms: NonZeroU64::new(60_000),
            condition: SetCondition::IfVersion(3),
        }),
        Body::DeleteKey(DeleteKey { key: kv_key() }),
        Body::SweepKeys(SweepKeys { from_ms: 9_000 }),
        Body::CreateNamespace(CreateNamespace::default()),
        Body::DeleteNamespace(DeleteNamespace {}),
    ]
}

fn on_streams() -> Vec<Body> {
    vec![
        Body::CreateStream(CreateStream {
            stream: stream(),
            settings: stream_settings(),
        }),
        Body::AppendRecords(AppendRecords {
            stream: stream(),
            records: vec![NewRecord {
                payload: Bytes::from("{}"),
                headers: labels(),
                key: Some(partition_key()),
                partition: Some(1),
            }],
        }),
        Body::TrimStream(TrimStream {
            stream: stream(),
            to: TrimTo::Before(record_id()),
        }),
        Body::DeleteStream(DeleteStream { stream: stream() }),
    ]
}

pub(crate) fn stream_settings() -> StreamSettings {
    StreamSettings {
        partitions: NonZeroU32::MIN.saturating_add(1),
        retention: Retention {
            count_max: Some(100),
            max_age_ms: Some(60_000),
            max_bytes: Some(1_000_000),
        },
        bytes_limit: 2_000_000,
    }
}

fn on_groups() -> Vec<Body> {
    let (take, records) = (TakeId(9), vec![record_id()]);
    let new = NewGroup {
        settings: group_settings(),
        start: StreamPosition::Id(record_id()),
    };
    vec![
        Body::CreateGroup(CreateGroup {
            group: group(),
            new,
        }),
        Body::JoinGroup(JoinGroup {
            group: group(),
            consumer: consumer(),
            incarnation: 5,
            worker: Some(super::worker()),
            create: Some(new),
            is_renewal: true,
        }),
        Body::LeaveGroup(LeaveGroup {
            group: group(),
            consumer: consumer(),
            incarnation: Some(5),
        }),
        Body::TakeRecords(TakeRecords {
            group: group(),
            consumer: consumer(),
            incarnation: 5,
            take,
            count_max: 10,
        }),
        Body::AckRecords(AckRecords {
            group: group(),
            consumer: consumer(),
            take,
            records: records.clone(),
        }),
        Body::NackRecords(NackRecords {
            group: group(),
            consumer: consumer(),
            take,
            records: records.clone(),
            delay_ms: 500,
        }),
        Body::TouchRecords(TouchRecords {
            group: group(),
            consumer: consumer(),
            take,
            records,
            extend_ms: 30_000,
        }),
        Body::DeleteGroup(DeleteGroup { group: group() }),
    ]
}

fn fire_trigger() -> Body {
    let record = |is_json| BatchedRecord {
        id: record_id(),
        is_json,
    };
    Body::FireTrigger(FireTrigger {
        workflow: super::workflow(),
        definition: DefinitionNumber(4),
        trigger: TriggerIndex(1),
        partition: 1,
        cursor: record_id(),
        batches: vec![
            TriggerBatch {
                records: vec![record(true), record(false)],
                refusal: None,
            },
            TriggerBatch {
                records: vec![record(true)],
                refusal: Some("/n is missing".to_owned()),
            },
        ],
    })
}
