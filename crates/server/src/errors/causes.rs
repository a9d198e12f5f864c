//! Converts the errors of the layers below to refusals.

use super::reason::ServerCode;
use super::refusal::Refusal;
use flotilla_engine::store::StoreError;
use flotilla_engine::{AccessRejection, QuotaRejection, Rejection, StartRejection};
use flotilla_replica::{
    BackupError, ChangeError, ChangeRefusal, FormError, InspectError, ReadError, Standstill,
    SubmitError,
};
use std::time::Duration;
use tonic::Code;

/// How long to wait when other callers must finish first.
const ROOM_DELAY: Duration = Duration::from_secs(1);

impl From<AccessRejection> for Refusal {
    fn from(rejection: AccessRejection) -> Self {
        Rejection::from(rejection).into()
    }
}

impl From<Rejection> for Refusal {
    fn from(rejection: Rejection) -> Self {
        let refusal = Self::new(rejection.code(), rejection.to_string());
        let cluster_ms = match &rejection {
            Rejection::RequestTooOld { now_ms, .. } => Some(*now_ms),
            _ => None,
        };
        let refusal = Self {
            hint: rejection.hint(),
            cluster_ms,
            ..refusal
        };
        if let Rejection::Quota(QuotaRejection::Exceeded(exceeded)) = rejection {
            return refusal.over_quota(exceeded);
        }
        match refusal.code {
            Code::InvalidArgument => refusal.at(field(&rejection)),
            Code::ResourceExhausted => refusal.after(ROOM_DELAY),
            _ => refusal,
        }
    }
}

/// The field that a malformed request is refused for.
fn field(rejection: &Rejection) -> &'static str {
    match rejection {
        Rejection::NamespaceMismatch { .. } => "namespace",
        Rejection::Start(StartRejection::RunIdReserved(_)) => "run_id",
        Rejection::Resume(_) => "from",
        Rejection::OutcomeReserved(_) => "outcome",
        Rejection::PartitionNotFound { .. } => "partition",
        Rejection::RecordsMissing => "records",
        Rejection::Quota(_) => "limits",
        _ => "request",
    }
}

impl From<SubmitError> for Refusal {
    fn from(error: SubmitError) -> Self {
        match error {
            SubmitError::Overloaded { retry_after_ms } => {
                Self::overloaded("expected room for the command, but too many are queued")
                    .after(Duration::from_millis(retry_after_ms))
            }
            SubmitError::DiskLow => disk_pressure(),
            SubmitError::EngineVersionTooLow { .. } => {
                let message = format!("expected every member to know this command, but {error}");
                Self::new(ServerCode::EngineVersionTooLow, message).with_hint(
                    "upgrade the members that run an older binary: `flo cluster status` shows them",
                )
            }
            SubmitError::NoLeader => no_leader(),
            SubmitError::NodeNotMember => Self::node_not_member(),
            SubmitError::Unknown => Self::new(
                ServerCode::OutcomeUnknown,
                "expected a response in time, but none came: the command may have been applied",
            )
            .with_hint("retry with the same request id, key or token"),
            SubmitError::TooLarge { bytes, bytes_max } => Self::too_large(format!(
                "expected a command of at most {bytes_max} bytes, but it has {bytes}"
            ))
            .at("request"),
            SubmitError::Diverged => diverged(),
            SubmitError::Shutdown => Self::shutting_down(),
        }
    }
}

impl From<flotilla_leader::Error> for Refusal {
    fn from(error: flotilla_leader::Error) -> Self {
        match error {
            flotilla_leader::Error::Submit(error) => error.into(),
            flotilla_leader::Error::Rejected(rejection) => rejection.into(),
            flotilla_leader::Error::Read(error) => error.into(),
            flotilla_leader::Error::PollClosed(closed) => closed.into(),
            flotilla_leader::Error::Reply(_)
            | flotilla_leader::Error::SchemaInvalid(_)
            | flotilla_leader::Error::Job(_) => Self::internal(error.to_string()),
        }
    }
}

impl From<Standstill> for Refusal {
    fn from(standstill: Standstill) -> Self {
        let message = match standstill {
            Standstill::NoLeader => {
                "expected a leader with a quorum, but this node has had no recent contact with one"
            }
            Standstill::NothingApplied => {
                "expected this node to apply what the cluster commits, but it applies nothing"
            }
        };
        Self::new(ServerCode::NodeStandstill, message)
            .with_hint("ask another node; `flo cluster status` shows which nodes are up")
    }
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::Refused(refusal) => {
                Self::new(code(&refusal), refusal.to_string()).with_hint(refusal.hint())
            }
            ChangeError::Submit(error) => error.into(),
        }
    }
}

fn code(refusal: &ChangeRefusal) -> ServerCode {
    match refusal {
        ChangeRefusal::NodeUnreachable(_) => ServerCode::NodeUnreachable,
        ChangeRefusal::NodeMismatch { .. } => ServerCode::NodeMismatch,
        ChangeRefusal::NodeNotEmpty(_) => ServerCode::NodeNotEmpty,
        ChangeRefusal::NodeIdRetired(_) => ServerCode::NodeIdRetired,
        ChangeRefusal::NodeIdInUse { .. } => ServerCode::NodeIdInUse,
        ChangeRefusal::AddressInUse { .. } => ServerCode::AddressInUse,
        ChangeRefusal::NodeNotMember(_) => ServerCode::NodeNotFound,
        ChangeRefusal::NodeNotVoter(_) => ServerCode::NodeNotVoter,
        ChangeRefusal::NodeLagging { .. } => ServerCode::NodeLagging,
        ChangeRefusal::LastVoter(_) => ServerCode::LastVoter,
        ChangeRefusal::QuorumAtRisk { .. } => ServerCode::QuorumAtRisk,
        ChangeRefusal::MembershipChangeInProgress => ServerCode::MembershipChangeInProgress,
        ChangeRefusal::LeadershipTransferTimeout => ServerCode::LeadershipTransferTimeout,
        ChangeRefusal::BinaryTooOld { .. } => ServerCode::BinaryTooOld,
        ChangeRefusal::NodeUnresponsive(_) => ServerCode::NodeUnreachable,
        ChangeRefusal::VoterDrained(_) => ServerCode::VoterDrained,
        ChangeRefusal::NoVoterToLead(_) => ServerCode::NoVoterToLead,
    }
}

impl From<InspectError> for Refusal {
    fn from(error: InspectError) -> Self {
        let code = match error {
            InspectError::NodeNotMember(_) => ServerCode::NodeNotFound,
            InspectError::NodeStarting(_) | InspectError::NodeUnresponsive(_) => {
                ServerCode::NodeUnreachable
            }
        };
        Self::new(code, error.to_string())
            .with_hint("`flo cluster status` shows the members, and which of them are up")
    }
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::NoLeader => no_leader(),
            ReadError::NodeNotMember => Self::node_not_member(),
            ReadError::NodeCatchingUp => Self::new(
                ServerCode::NodeCatchingUp,
                "expected this node to have caught up with the log, but it has not since its start",
            )
            .with_hint("ask another node, or wait for a leader"),
            ReadError::Overloaded => {
                Self::overloaded("expected room for the read, but too many are queued")
            }
            ReadError::Diverged => diverged(),
            ReadError::Shutdown => Self::shutting_down(),
            ReadError::Store(error) => error.into(),
        }
    }
}

impl From<BackupError> for Refusal {
    fn from(error: BackupError) -> Self {
        let message = error.to_string();
        match error {
            BackupError::Read(error) => error.into(),
            BackupError::UnderWay => Self::new(ServerCode::BackupInProgress, message)
                .with_hint("ask another node, or retry when a read has ended"),
            BackupError::SnapshotTimeout => Self::new(ServerCode::SnapshotTimeout, message)
                .with_hint("retry with more time: --timeout"),
            BackupError::NodeNotMember(_) => Self::new(ServerCode::NodeNotFound, message)
                .with_hint("`flo cluster status` shows the members"),
            BackupError::Unreachable(_) => Self::unavailable(&message)
                .with_hint("`flo cluster status` shows which members are reachable"),
            BackupError::Broken(_) => {
                Self::internal(message).with_hint("check the node's log: its disk may be failing")
            }
        }
    }
}

impl From<FormError> for Refusal {
    fn from(error: FormError) -> Self {
        let message = error.to_string();
        match error {
            FormError::NotFirstMember => Self::new(ServerCode::NotFirstMember, message)
                .with_hint("send `flo cluster form` to a node in `peers`; add this node with `flo cluster add-learner`"),
            FormError::Waiting(_) => Self::new(ServerCode::NodeNotMember, message).with_hint(
                "start all first members with empty data directories; the request stays in effect until the \
                 node stops; `flo cluster status` shows what the node is waiting for",
            ),
            FormError::Shutdown => Self::shutting_down(),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::internal(format!("expected to read the state, but {error}"))
            .with_hint("check the node's log: its disk may be failing")
    }
}

fn no_leader() -> Refusal {
    let message = "expected a leader to respond in time, but this node finds none";
    Refusal::new(ServerCode::NoLeader, message)
        .with_hint("a majority of the nodes must be up; `flo cluster status` shows them")
}

fn disk_pressure() -> Refusal {
    let message = "expected free disk space on a majority of the members, but too many disks are \
                   nearly full";
    Refusal::new(ServerCode::DiskPressure, message)
        .with_hint("free or add space: the cluster then resumes by itself")
        .after(ROOM_DELAY)
}

fn diverged() -> Refusal {
    let message = "expected this node's state to equal that of the others, but it differs";
    Refusal::new(ServerCode::NodeDiverged, message)
        .with_hint("ask another node; this one has stopped serving")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::ids::{KvKey, RunId, StreamName, WorkflowName};
    use flotilla_engine::{RejectionCode, RejectionKind, Undeliverable};

    fn said(refusal: &Refusal) -> (Code, &'static str) {
        (refusal.code, refusal.reason)
    }

    #[test]
    fn the_leader_tries_again_what_clients_may_try_again() {
        let submitted = [
            SubmitError::Overloaded { retry_after_ms: 1 },
            SubmitError::NoLeader,
            SubmitError::NodeNotMember,
            SubmitError::Unknown,
            SubmitError::DiskLow,
            SubmitError::TooLarge {
                bytes: 2,
                bytes_max: 1,
            },
            SubmitError::EngineVersionTooLow {
                needed: 2,
                agreed: 1,
            },
            SubmitError::Diverged,
            SubmitError::Shutdown,
        ];
        let rejected = RejectionCode::ALL.iter().map(|code| {
            let is_again = Refusal::new(*code, "").may_succeed_later();
            (is_again, code.kind())
        });
        for (is_again, kind) in rejected {
            let is_passing = matches!(kind, RejectionKind::Stale | RejectionKind::Exhausted);
            assert_eq!(is_again, is_passing, "{kind:?}");
        }
        for error in submitted {
            let error = flotilla_leader::Error::from(error);
            let is_again = error.may_succeed_later();
            assert_eq!(Refusal::from(error).may_succeed_later(), is_again);
        }
    }

    #[test]
    fn each_kind_of_rejection_has_its_status_code() {
        let run = RunId::new("r").unwrap();
        let workflow = WorkflowName::new("w").unwrap();
        let cases = [
            (
                Rejection::RunNotFound(run.clone()),
                (Code::NotFound, "run_not_found"),
            ),
            (
                Rejection::Start(StartRejection::RunIdReserved(run.clone())),
                (Code::InvalidArgument, "run_id_reserved"),
            ),
            (
                Rejection::OutcomeReserved("x".into()),
                (Code::InvalidArgument, "outcome_reserved"),
            ),
            (
                Rejection::WorkflowDisabled(workflow.clone()),
                (Code::FailedPrecondition, "workflow_disabled"),
            ),
            (
                Rejection::InputInvalid("x".into()),
                (Code::FailedPrecondition, "input_invalid"),
            ),
            (
                Rejection::IdempotencyKeyMissing(workflow),
                (Code::FailedPrecondition, "idempotency_key_missing"),
            ),
            (
                Rejection::Start(StartRejection::RunIdInUse(run.clone())),
                (Code::AlreadyExists, "run_id_in_use"),
            ),
            (
                Rejection::RequestIdReused,
                (Code::Aborted, "request_id_reused"),
            ),
            (
                Rejection::StreamExists {
                    stream: StreamName::new("s").unwrap(),
                    differences: vec!["partitions is 1, not 2".to_owned()],
                },
                (Code::AlreadyExists, "stream_exists"),
            ),
            (
                Rejection::KeyVersionMismatch {
                    key: KvKey::new("k").unwrap(),
                    expected: 1,
                    found: None,
                },
                (Code::Aborted, "key_version_mismatch"),
            ),
            (
                Rejection::Undeliverable(Undeliverable::SignalLimitExceeded(run)),
                (Code::ResourceExhausted, "signal_limit_exceeded"),
            ),
            (
                Rejection::InputValidationStale,
                (Code::Unavailable, "input_validation_stale"),
            ),
            (
                Rejection::Internal("x".into()),
                (Code::Internal, "internal"),
            ),
        ];
        for (rejection, expected) in cases {
            assert_eq!(said(&rejection.into()), expected);
        }
    }

    #[test]
    fn a_malformed_request_names_its_field_and_a_full_one_says_when_to_come_back() {
        let refusal = Refusal::from(Rejection::Start(StartRejection::RunIdReserved(
            RunId::new("wfrun-1").unwrap(),
        )));
        assert_eq!(refusal.violations[0].field, "run_id");
        assert_eq!(*refusal.violations[0].description, *refusal.message);
        let refusal = Refusal::from(SubmitError::Overloaded { retry_after_ms: 70 });
        assert_eq!(said(&refusal), (Code::ResourceExhausted, "overloaded"));
        assert_eq!(refusal.retry_delay, Some(Duration::from_millis(70)));
    }

    #[test]
    fn a_lost_answer_differs_from_a_command_that_was_never_proposed() {
        assert_eq!(
            said(&SubmitError::NoLeader.into()),
            (Code::Unavailable, "no_leader")
        );
        assert_eq!(
            said(&SubmitError::Unknown.into()),
            (Code::Unavailable, "outcome_unknown")
        );
        assert!(Refusal::from(SubmitError::Unknown).may_succeed_later());
        assert!(!Refusal::from(Rejection::RequestIdReused).may_succeed_later());
    }
}
