//! Golden bytes (design rule 12): stored encodings must stay readable forever.
//!
//! Until the first release, `UPDATE=1` may rewrite these files. From then on, an existing line never changes; a new
//! version or variant adds new lines.

use crate::{samples, tables, testdata};
use flotilla_engine::ids::Namespace;
use flotilla_engine::{Body, Command, CommandEnvelope, Entry, NodeId, RequestId, Stamp};
use std::fmt::Write as _;

#[test]
fn entries_have_the_bytes_of_the_log() {
    let mut text = String::new();
    for body in samples::bodies() {
        let entry = entry(&body);
        assert_eq!(Entry::decode(&entry.encode()).expect("just encoded"), entry);
        writeln!(text, "{} {}", name_of(&body), hex(&entry.encode())).expect("a String");
    }
    let found = testdata::compare(&testdata::file("golden/entries.txt"), &text);
    assert!(found.is_ok(), "{}", found.unwrap_err());
}

#[test]
fn records_have_the_bytes_of_the_state() {
    let mut text = String::new();
    for row in tables::rows() {
        let (key, record) = (hex(&row.key), hex(&row.record));
        writeln!(text, "{} {key} {record}", row.name).expect("a String");
    }
    let found = testdata::compare(&testdata::file("golden/records.txt"), &text);
    assert!(found.is_ok(), "{}", found.unwrap_err());
}

#[test]
fn every_command_survives_the_way_to_the_leader() {
    for (position, body) in samples::bodies().into_iter().enumerate() {
        assert_eq!(
            position_of(&body),
            position,
            "samples are in the enum's order"
        );
        let command = body.into_command(Namespace::default_namespace());
        let envelope = command.by_anyone();
        let decoded = CommandEnvelope::decode(&envelope.encode()).expect("just encoded");
        assert_eq!(decoded, envelope);
    }
}

fn entry(body: &Body) -> Entry {
    let command = Command {
        request_id: Some(RequestId(0x1234_5678_9abc_def0)),
        ..body.clone().into_command(samples::namespace())
    };
    Entry {
        stamp: Stamp {
            now_ms: 1_700_000_000_000,
            seed: 42,
            node: NodeId(1),
        },
        offers: vec![samples::offer()],
        commands: vec![command.by_anyone()],
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn name_of(body: &Body) -> String {
    let text = format!("{body:?}");
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

/// The variant's place: one that is added here needs a sample.
fn position_of(body: &Body) -> usize {
    match body {
        Body::CreateDefinition(_) => 0,
        Body::SetWorkflowEnabled(_) => 1,
        Body::StartRun(_) => 2,
        Body::SignalRun(_) => 3,
        Body::CancelRun(_) => 4,
        Body::DecideSchemaCheck(_) => 5,
        Body::RegisterAction(_) => 6,
        Body::DeleteAction(_) => 7,
        Body::SetActionEnabled(_) => 8,
        Body::InvokeAction(_) => 9,
        Body::CompleteTask(_) => 10,
        Body::FailTask(_) => 11,
        Body::TouchTask(_) => 12,
        Body::AssignTasks(_) => 13,
        Body::RegisterWorker(_) => 14,
        Body::HeartbeatWorker(_) => 15,
        Body::DrainWorker(_) => 16,
        Body::DeregisterWorker(_) => 17,
        Body::ReleaseWorker(_) => 18,
        Body::FireTimer(_) => 19,
        Body::BeginTerm(_) => 20,
        Body::SweepRequests(_) => 21,
        Body::AcceptTask(_) => 22,
        Body::ReportTask(_) => 23,
        Body::InvalidateCache(_) => 24,
        Body::ResetPlan(_) => 25,
        Body::SetNextFiring(_) => 26,
        Body::FireSchedule(_) => 27,
        Body::SweepRuns(_) => 28,
        Body::RequeueDeadLetters(_) => 29,
        Body::PurgeDeadLetters(_) => 30,
        Body::SetKey(_) => 31,
        Body::DeleteKey(_) => 32,
        Body::SweepKeys(_) => 33,
        Body::CreateNamespace(_) => 34,
        Body::DeleteNamespace(_) => 35,
        Body::CreateStream(_) => 36,
        Body::AppendRecords(_) => 37,
        Body::TrimStream(_) => 38,
        Body::DeleteStream(_) => 39,
        Body::CreateGroup(_) => 40,
        Body::JoinGroup(_) => 41,
        Body::LeaveGroup(_) => 42,
        Body::TakeRecords(_) => 43,
        Body::AckRecords(_) => 44,
        Body::NackRecords(_) => 45,
        Body::TouchRecords(_) => 46,
        Body::DeleteGroup(_) => 47,
        Body::FireTrigger(_) => 48,
        Body::ReleaseQuarantined(_) => 49,
        Body::CancelActionRun(_) => 50,
        Body::DeleteWorkflow(_) => 51,
        Body::DecideApproval(_) => 52,
        Body::CompleteStep(_) => 53,
        Body::ResumeRun(_) => 54,
        Body::DecideLocks(_) => 55,
        Body::AddInfo(_) => 56,
        Body::AddTaskInfo(_) => 57,
        Body::RetryRun(_) => 58,
        Body::SetClusterSettings(_) => 59,
        Body::InitializeAccess(_) => 60,
        Body::SetAccessMode(_) => 61,
        Body::CreateToken(_) => 62,
        Body::RotateToken(_) => 63,
        Body::RevokeToken(_) => 64,
        Body::RecoverAccess(_) => 65,
        Body::RecordTokenUses(_) => 66,
    }
}
