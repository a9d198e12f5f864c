//! What goes to callers and drivers: replies, rejections and effects survive the way between nodes.

use crate::samples;
use flotilla_engine::definition::Tracking;
use flotilla_engine::ids::{ActionRunNumber, RunNumber, StepName};
use flotilla_engine::rows::QuarantinedKind;
use flotilla_engine::{
    AccessRejection, Actor, Assignment, ClusterRole, Effect, Grant, Permission, Phase, PlanRef,
    Rejection, RejectionCode, Reply, Undeliverable, codec, reply,
};
use flotilla_engine::{Drift, ResumeRejection, StartRejection, WorkflowRejection};
use flotilla_engine::{QuotaDimension, QuotaExceeded, QuotaRejection, QuotaScope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::fmt::Debug;

#[test]
fn replies_rejections_and_effects_survive_the_round_trip() {
    round_trip(&replies());
    round_trip(&rejections());
    round_trip(&effects());
}

#[test]
fn every_rejection_has_a_code_of_its_own_and_says_what_was_expected() {
    let rejections = rejections();
    let codes: BTreeSet<RejectionCode> = rejections.iter().map(Rejection::code).collect();
    assert_eq!(codes.len(), rejections.len());
    let all: BTreeSet<RejectionCode> = RejectionCode::ALL.iter().copied().collect();
    assert_eq!(codes, all, "each code is that of a rejection");
    for rejection in &rejections {
        let is_snake = |c: char| c.is_ascii_lowercase() || c == '_';
        let code = rejection.code().as_str();
        assert!(code.chars().all(is_snake), "{code}");
        let text = rejection.to_string();
        assert!(
            text.starts_with("expected ") && text.contains(", but "),
            "{text}"
        );
    }
}

fn round_trip<T: Serialize + DeserializeOwned + Debug + PartialEq>(values: &[T]) {
    for value in values {
        let decoded: T = codec::decode(&codec::encode(value)).expect("just encoded");
        assert_eq!(&decoded, value);
    }
}

fn replies() -> Vec<Reply> {
    let mut replies = replies_of_work();
    replies.extend(replies_of_data());
    replies
}

fn replies_of_work() -> Vec<Reply> {
    vec![
        Reply::Done(reply::Done {}),
        Reply::DefinitionCreated(reply::DefinitionCreated {
            revision: 2,
            is_new: true,
            is_latest: false,
        }),
        Reply::RunStarted(reply::RunStarted {
            run_id: samples::run_id(),
            workflow: samples::workflow(),
            version: samples::version(),
            revision: 2,
            existing: Some(reply::ExistingReason::IdempotencyKey),
        }),
        Reply::SignalAccepted(reply::SignalAccepted {
            is_repeated: true,
            is_kept: false,
        }),
        Reply::ActionRegistered(reply::ActionRegistered {
            version: 2,
            is_changed: true,
        }),
        Reply::ActionInvoked(reply::ActionInvoked {
            action_run: ActionRunNumber(9),
            is_existing: false,
        }),
        Reply::LeaseExtended(reply::LeaseExtended {
            expires_at_ms: 5_000,
        }),
        Reply::TasksAssigned(reply::TasksAssigned {
            count: 3,
            is_fitting_left: true,
        }),
        Reply::HeartbeatRecorded(reply::HeartbeatRecorded { is_draining: true }),
        Reply::RunCancelled(reply::RunCancelled {
            phase: Some(Phase::OnCancel),
            has_ended: false,
        }),
        Reply::TaskAccepted(reply::TaskAccepted {
            deadline_at_ms: Some(5_000),
        }),
        Reply::InfoAdded(reply::InfoAdded { number: 3 }),
        Reply::StepReported(reply::StepReported {
            step: samples::name("gate"),
            visit: 2,
        }),
        Reply::CacheInvalidated(reply::CacheInvalidated {
            plan_count: 2,
            next: Some(PlanRef {
                workflow: samples::workflow(),
                plan: samples::name("payment"),
            }),
        }),
        Reply::DeadLettersRequeued(reply::DeadLettersRequeued {
            action_runs: vec![ActionRunNumber(9)],
            has_more: true,
        }),
        Reply::DeadLettersPurged(reply::DeadLettersPurged {
            count: 3,
            has_more: false,
        }),
        Reply::ScheduleFired(reply::ScheduleFired {
            run_id: Some(samples::run_id()),
        }),
    ]
}

fn replies_of_data() -> Vec<Reply> {
    vec![
        Reply::KeySet(reply::KeySet { version: 5 }),
        Reply::QuotaSet(reply::QuotaSet { version: 5 }),
        Reply::NamespaceCreated(reply::NamespaceCreated { is_new: true }),
        Reply::StreamCreated(reply::StreamCreated { is_new: true }),
        Reply::RecordsAppended(reply::RecordsAppended {
            first: samples::record_id(),
        }),
        Reply::GroupCreated(reply::GroupCreated { is_new: true }),
        Reply::GroupJoined(reply::GroupJoined {
            ack_timeout_ms: 30_000,
        }),
        Reply::RecordsTaken(reply::RecordsTaken { count: 3 }),
        Reply::DeliveriesEnded(reply::DeliveriesEnded { count: 3 }),
        Reply::Deleted(reply::Deleted { is_found: true }),
        Reply::TriggerFired(reply::TriggerFired {
            run_count: 2,
            refused_count: 1,
            skipped_count: 1,
        }),
        Reply::NamespaceDeleted(reply::NamespaceDeleted {
            is_found: true,
            has_more: true,
        }),
        Reply::WorkflowDeleted(reply::WorkflowDeleted {
            is_found: true,
            has_more: true,
        }),
        Reply::TokenCreated(reply::TokenCreated {
            id: samples::api_token(),
            expires_at_ms: Some(9_000),
        }),
        Reply::TokenRevoked(reply::TokenRevoked { is_new: true }),
    ]
}

fn rejections() -> Vec<Rejection> {
    let mut rejections = rejections_of_work();
    rejections.extend(rejections_of_starts());
    rejections.extend(rejections_of_workflows());
    rejections.extend(rejections_of_resumes());
    rejections.extend(undeliverables());
    rejections.extend(rejections_of_data());
    rejections
}

fn undeliverables() -> Vec<Rejection> {
    let run_id = samples::run_id();
    let reasons = [
        Undeliverable::ScopeNotFound {
            run_id: run_id.clone(),
            scope: samples::scope_path(),
        },
        Undeliverable::ScopeEnded {
            run_id: run_id.clone(),
            scope: samples::scope_path(),
        },
        Undeliverable::ApprovalNotOpen {
            run_id: run_id.clone(),
            named: "a step".to_owned(),
        },
        Undeliverable::StepNotWaiting {
            run_id: run_id.clone(),
            named: "a step".to_owned(),
        },
        Undeliverable::ScopeNeeded {
            run_id: run_id.clone(),
            open: "\"gate\"".to_owned(),
        },
        Undeliverable::RunEnding {
            run_id: run_id.clone(),
            phase: "on_error".to_owned(),
        },
        Undeliverable::RunRetrying(run_id.clone()),
        Undeliverable::SignalLimitExceeded(run_id),
        Undeliverable::SignalTypeReserved(samples::signal_type()),
    ];
    reasons.map(Rejection::Undeliverable).to_vec()
}

fn rejections_of_workflows() -> Vec<Rejection> {
    let rejections = [
        WorkflowRejection::VersionNotFound {
            workflow: samples::workflow(),
            version: samples::version(),
        },
        WorkflowRejection::RevisionNotFound {
            workflow: samples::workflow(),
            version: samples::version(),
            revision: 3,
        },
        WorkflowRejection::WorkflowsTooMany(samples::namespace()),
        WorkflowRejection::RevisionsTooMany(samples::workflow()),
        WorkflowRejection::HasRuns(samples::workflow()),
        WorkflowRejection::BeingDeleted(samples::workflow()),
    ];
    rejections.map(Rejection::Workflow).to_vec()
}

fn rejections_of_starts() -> Vec<Rejection> {
    let run_id = samples::run_id();
    let rejections = [
        StartRejection::RunIdInUse(run_id.clone()),
        StartRejection::RunIdReserved(run_id.clone()),
        StartRejection::LimitReached {
            key: "\"vm-1\"".to_owned(),
            limit: 2,
            holders: vec![run_id],
        },
        StartRejection::ConcurrencyKeyInvalid("it is too large".to_owned()),
        StartRejection::TargetActive {
            target: "vm-1".to_owned(),
            run: samples::run_id(),
        },
        StartRejection::TargetLocked {
            target: "vm-1".to_owned(),
            pattern: "^vm-1$".to_owned(),
            run: samples::run_id(),
        },
        StartRejection::LocksTooMany,
        StartRejection::TargetInvalid("it is too long".to_owned()),
        StartRejection::LocksInvalid("it is not a text".to_owned()),
    ];
    rejections.map(Rejection::Start).to_vec()
}

fn rejections_of_resumes() -> Vec<Rejection> {
    let run_id = samples::run_id();
    let rejections = [
        ResumeRejection::Open {
            run_id: run_id.clone(),
            status: "waiting".to_owned(),
        },
        ResumeRejection::Completed(run_id.clone()),
        ResumeRejection::Superseded {
            run_id: run_id.clone(),
            latest: run_id.clone(),
        },
        ResumeRejection::Compensated(run_id.clone()),
        ResumeRejection::ParentOpen {
            run_id: run_id.clone(),
            parent: run_id.clone(),
        },
        ResumeRejection::StepNeeded {
            run_id: run_id.clone(),
            last: "step \"gate\"".to_owned(),
        },
        ResumeRejection::StepNotVisited {
            run_id: run_id.clone(),
            found: "there is no step \"pay\"".to_owned(),
        },
        ResumeRejection::Drift(Box::new(drift())),
        ResumeRejection::TooManyRevisions(run_id.clone()),
        ResumeRejection::TooManyRows(run_id.clone()),
        ResumeRejection::HistoryTrimmed {
            run_id: run_id.clone(),
            step: samples::step(),
        },
        ResumeRejection::ResultsTooLarge {
            run_id,
            step: samples::step(),
        },
    ];
    rejections.map(Rejection::Resume).to_vec()
}

fn drift() -> Drift {
    Drift {
        run_id: samples::run_id(),
        saved_signature: "5d41402abc4b2a76".to_owned(),
        version: samples::version(),
        revision: 2,
        signature: "b9719d911017c592".to_owned(),
        differences: vec!["step \"gate\" is missing".to_owned()],
        completed: vec![samples::step()],
        pending: vec![samples::step(), samples::step()],
        is_forced: false,
    }
}

fn rejections_of_work() -> Vec<Rejection> {
    let workflow = samples::workflow();
    let (run_id, action_run) = (samples::run_id(), ActionRunNumber(9));
    let text = || "why".to_owned();
    vec![
        Rejection::WorkflowNotFound(workflow.clone()),
        Rejection::WorkflowDisabled(workflow.clone()),
        Rejection::NamespaceMismatch {
            expected: samples::namespace(),
            found: samples::namespace(),
        },
        Rejection::FiringStale(workflow.clone()),
        Rejection::FiringNotDue,
        Rejection::FiringOutOfOrder,
        Rejection::IdempotencyKeyReserved(samples::key()),
        Rejection::IdempotencyKeyMissing(workflow),
        Rejection::InputValidationStale,
        Rejection::InputInvalid(format!("{}, but {}", text(), text())),
        Rejection::RunNotFound(run_id.clone()),
        Rejection::RunEnded {
            run_id: run_id.clone(),
            status: text(),
        },
        Rejection::RunQuarantined(run_id),
        Rejection::ActionRunQuarantined(action_run),
        Rejection::ActivationStale,
        Rejection::ActionNotFound(samples::action()),
        Rejection::ActionDisabled(samples::action()),
        Rejection::ActionRunNotFound(action_run),
        Rejection::ActionRunEnded {
            action_run,
            status: text(),
        },
        Rejection::LeaseLost(action_run),
        Rejection::TaskAccepted(action_run),
        Rejection::from(Undeliverable::TaskCancelled(action_run)),
        Rejection::from(Undeliverable::TaskWithoutRun(action_run)),
        Rejection::TaskNotTracked(action_run),
        Rejection::ReportTokenMismatch(action_run),
        Rejection::PlanNotFound {
            workflow: samples::workflow(),
            plan: samples::name("payment"),
        },
        Rejection::ExecutorNotFound {
            plan: samples::name("payment"),
            executor: samples::name("stripe"),
        },
        Rejection::DeadLetterNotFound(action_run),
        Rejection::OutcomeReserved(text()),
        Rejection::WorkerNotFound(samples::worker()),
        Rejection::WorkerReplaced(samples::worker()),
        Rejection::WorkerIdTaken(samples::worker()),
        Rejection::WorkerLimitExceeded(samples::namespace()),
        Rejection::TimerStale,
        Rejection::TimerNotDue,
        Rejection::EntryFull,
        Rejection::RequestIdReused,
        Rejection::TooLarge {
            noun: text(),
            bytes: 2,
            bytes_max: 1,
        },
        Rejection::Internal(text()),
        Rejection::RequestIdLimitExceeded,
        Rejection::RequestTooOld {
            age_ms: 301_999,
            now_ms: 1,
        },
    ]
}

fn rejections_of_data() -> Vec<Rejection> {
    let text = || "why".to_owned();
    vec![
        Rejection::KeyExists {
            key: samples::kv_key(),
            version: 5,
        },
        Rejection::KeyVersionMismatch {
            key: samples::kv_key(),
            expected: 5,
            found: None,
        },
        Rejection::LimitExceeded {
            noun: text(),
            count_max: 1,
        },
        Rejection::NamespaceNotEmpty {
            namespace: samples::namespace(),
            left: text(),
        },
        Rejection::NamespaceIsDefault,
        Rejection::StreamNotFound(samples::stream()),
        Rejection::StreamExists {
            stream: samples::stream(),
            differences: vec![text()],
        },
        Rejection::PartitionNotFound {
            stream: samples::stream(),
            partition: 2,
            partitions: 1,
        },
        Rejection::RecordsMissing,
        Rejection::GroupNotFound(samples::group()),
        Rejection::GroupExists {
            group: samples::group(),
            differences: vec![text()],
        },
        Rejection::ConsumerNotFound(samples::consumer()),
        Rejection::DeliveryEnded,
        Rejection::GroupInUse(samples::group()),
        Rejection::GroupOwnedByTrigger(samples::group()),
        Rejection::TriggerFiringStale(samples::workflow()),
        Rejection::BatchNotDue,
        Rejection::WorkerHealthy(samples::worker()),
        Rejection::ConsumerReplaced(samples::consumer()),
        Rejection::StreamQuarantined(samples::stream()),
        Rejection::GroupQuarantined(samples::group()),
        Rejection::ActionRunOfStep {
            action_run: ActionRunNumber(7),
            run_id: samples::run_id(),
        },
        Rejection::QuarantineNotFound {
            kind: QuarantinedKind::ActionRun,
            name: text(),
        },
        Rejection::SettingOutOfRange {
            name: text(),
            value: 5,
            min: 7,
            max: 9,
        },
    ]
    .into_iter()
    .chain(of_access())
    .chain(of_quotas())
    .collect()
}

fn of_access() -> impl Iterator<Item = Rejection> {
    let (token, grant) = (
        samples::api_token(),
        Grant::InCluster(ClusterRole::ClusterAdmin),
    );
    let rejections = vec![
        AccessRejection::CredentialMissing,
        AccessRejection::CredentialUnknown,
        AccessRejection::CredentialExpired(Actor::Token(token)),
        AccessRejection::SubjectBlocked(samples::bindings::binding_subject()),
        AccessRejection::BindingNotFound {
            subject: samples::bindings::binding_subject(),
            scope: samples::namespace().into(),
        },
        AccessRejection::CredentialRevoked(token),
        AccessRejection::PermissionDenied {
            permissions: vec![Permission::TaskWork, Permission::WorkerControl],
            scope: samples::namespace().into(),
        },
        AccessRejection::GrantExceedsOwn(grant.clone()),
        AccessRejection::GrantOutOfScope {
            grant,
            scope: samples::namespace().into(),
        },
        AccessRejection::TokenGrantsInvalid { count: 33 },
        AccessRejection::TokenNotFound(token),
        AccessRejection::TokenEnded(token),
        AccessRejection::TokenIdTaken(token),
        AccessRejection::TokenSecretTaken,
        AccessRejection::TokenApprovesInvalid { count: 33 },
        AccessRejection::NotAnApprover(samples::identity()),
        AccessRejection::AccessNotBootstrapped,
    ];
    rejections.into_iter().map(Rejection::from)
}

fn of_quotas() -> impl Iterator<Item = Rejection> {
    let scope = QuotaScope::Namespace(samples::namespace());
    let rejections = vec![
        QuotaRejection::Exceeded(Box::new(QuotaExceeded {
            dimension: QuotaDimension::StartsPerMinute,
            scope: QuotaScope::Tree(samples::quota::tree()),
            limit: 60,
            used: 61,
            retry_after_ms: Some(900),
        })),
        QuotaRejection::VersionMismatch {
            scope: scope.clone(),
            expected: 3,
            found: 4,
        },
        QuotaRejection::NamespaceMissing(scope.clone()),
        QuotaRejection::DimensionOfTrees {
            dimension: QuotaDimension::Namespaces,
            scope,
        },
    ];
    rejections.into_iter().map(Rejection::from)
}

fn effects() -> Vec<Effect> {
    let (namespace, worker) = (samples::namespace(), samples::worker());
    vec![
        Effect::WakeWorkers {
            namespace: namespace.clone(),
            action: samples::action(),
        },
        Effect::DeliverTask {
            worker: worker.clone(),
            poll: 3,
            assignment: Box::new(assignment()),
        },
        Effect::RevokeTask {
            namespace: namespace.clone(),
            worker: worker.clone(),
            token: samples::token(),
            is_answer_awaited: true,
        },
        Effect::DrainWorker {
            namespace: namespace.clone(),
            worker,
        },
        Effect::ArmTimer { due_ms: 5_000 },
        Effect::ArmSchedule { due_ms: 5_000 },
        Effect::ArmTrigger { due_ms: 5_000 },
        Effect::ArmRetention { due_ms: 5_000 },
        Effect::CheckSchema {
            run: RunNumber(7),
            activation: 3,
        },
        Effect::RunChanged {
            namespace,
            run_id: samples::run_id(),
            is_open: true,
        },
        Effect::ModulesChanged,
        Effect::AccessChanged,
        Effect::ActionRunEnded {
            action_run: ActionRunNumber(9),
        },
        Effect::StreamChanged {
            namespace: samples::namespace(),
            stream: samples::stream(),
        },
        Effect::RecordsReady {
            namespace: samples::namespace(),
            stream: samples::stream(),
            group: samples::group().group,
        },
        Effect::RecordsLost {
            namespace: samples::namespace(),
            stream: samples::stream(),
            count: 3,
        },
    ]
}

fn assignment() -> Assignment {
    Assignment {
        token: samples::token(),
        namespace: samples::namespace(),
        action: samples::action(),
        input: samples::payload(),
        lease_expires_at_ms: 31_000,
        timeout_ms: 30_000,
        created_at_ms: 1_000,
        run_id: Some(samples::run_id()),
        step: Some(StepName::new("start").expect("a name")),
        labels: samples::labels(),
        is_cancelled: true,
        tracking: Tracking::Async {
            timeout_ms: Some(300_000),
        },
    }
}
