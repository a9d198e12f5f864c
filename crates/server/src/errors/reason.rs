//! The reasons of refusals: each is in a table, so that none is used without a meaning.

use flotilla_engine::{RejectionCode, RejectionKind};
use tonic::Code;

/// The reason of a refusal, in snake case, with the status that it has over gRPC. Made only from the
/// two tables: the engine's and [`ServerCode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(super) name: &'static str,
    pub(super) status: Code,
}

/// Makes [`ServerCode`] from the table: name, code, status, meaning.
macro_rules! codes {
    ($($name:ident $code:literal $status:ident $meaning:literal;)*) => {
        /// The reasons that the server has beside the engine's.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum ServerCode {
            $(#[doc = $meaning] $name,)*
        }

        impl ServerCode {
            pub(super) const ALL: &'static [Self] = &[$(Self::$name),*];

            pub(super) fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }
        }

        impl From<ServerCode> for Reason {
            fn from(code: ServerCode) -> Self {
                let (name, status) = match code {
                    $(ServerCode::$name => ($code, Code::$status),)*
                };
                Self { name, status }
            }
        }
    };
}

codes! {
    InvalidArgument "invalid_argument" InvalidArgument
        "The request is malformed; the message and the violations name the field.";
    DefinitionInvalid "definition_invalid" FailedPrecondition
        "The definition has errors; the violations name their places.";
    WhereInvalid "where_invalid" InvalidArgument
        "The expression of `--where` cannot be read; the message shows where.";
    ModuleInvalid "module_invalid" InvalidArgument
        "The WebAssembly module cannot be an action.";
    ScheduleNotFound "schedule_not_found" NotFound
        "The workflow has no schedule.";
    KeyNotFound "key_not_found" NotFound
        "There is no such key, or its time to live is over.";
    Overloaded "overloaded" ResourceExhausted
        "The node has more in hand than it may, and did not look at the request.";
    DiskLow "disk_low" ResourceExhausted
        "The disk of the leader, or those of too many members, are nearly full; nothing was done.";
    NoLeader "no_leader" Unavailable
        "The cluster has no leader, or none was found in time; nothing was done.";
    NotAMember "not_a_member" Unavailable
        "The node is not a member of a cluster yet; nothing was done.";
    NotLeader "not_leader" Unavailable
        "Only the leader can answer, and this node does not lead; nothing was done.";
    OutcomeUnknown "outcome_unknown" Unavailable
        "No answer came in time: the command may have been applied, and may still be.";
    EngineVersionLow "engine_version_low" FailedPrecondition
        "Not every member runs a binary that knows this command yet; nothing was done.";
    NotReadable "not_readable" Unavailable
        "The node has not caught up with the log since its start.";
    Diverged "diverged" Unavailable
        "The node's state differs from that of the others, and it has stopped serving.";
    ShuttingDown "shutting_down" Unavailable
        "The node is stopping.";
    Unavailable "unavailable" Unavailable
        "Something beside the request failed.";
    NodeUnreachable "node_unreachable" FailedPrecondition
        "No node answers at the address that is to become a member.";
    NodeDiffers "node_differs" FailedPrecondition
        "Another node than the one that is to become a member answers at its address.";
    NodeNotEmpty "node_not_empty" FailedPrecondition
        "The node that is to become a member has data of another cluster.";
    NodeIdRetired "node_id_retired" FailedPrecondition
        "The id was that of a member that was removed: it is never used again.";
    NodeIdTaken "node_id_taken" AlreadyExists
        "The id is that of a member at another address.";
    AddressTaken "address_taken" AlreadyExists
        "The address is that of another member.";
    NodeNotFound "node_not_found" NotFound
        "The cluster has no such member.";
    NotAVoter "not_a_voter" FailedPrecondition
        "The member has no vote, and so cannot lead.";
    LearnerLags "learner_lags" Unavailable
        "The learner did not catch up within the deadline; nothing was changed.";
    LastVoter "last_voter" FailedPrecondition
        "The member is the last one with a vote.";
    QuorumAtRisk "quorum_at_risk" FailedPrecondition
        "Too few of the voters before the change answer, or of those after it: nothing could be written.";
    ChangeUnderWay "change_under_way" Unavailable
        "Another change of members did not end within the deadline; nothing was changed.";
    NotTakenOver "not_taken_over" Unavailable
        "The voter does not answer, or none took over within the deadline.";
    BinaryTooOld "binary_too_old" FailedPrecondition
        "The node that is to become a member runs a binary that does not know what the cluster has agreed on.";
    BackupUnderWay "backup_under_way" Unavailable
        "The node gives as many backups as it may at once.";
    SnapshotLate "snapshot_late" Unavailable
        "A snapshot was not made within the deadline; it may still be.";
    HelloMissing "hello_missing" DeadlineExceeded
        "The worker opened a stream and did not say who it is.";
    PollReplaced "poll_replaced" Unavailable
        "The worker's stream ended, because the worker has opened a newer one.";
    PollLost "poll_lost" Unavailable
        "The worker's stream ended, because the worker or the node fell behind; tasks are handed out again.";
    BodyLate "body_late" DeadlineExceeded
        "The body of a request over HTTP did not come in time.";
    TokenMissing "token_missing" Unauthenticated
        "A report over HTTP has no header `Authorization: Bearer TOKEN`.";
    TokenMalformed "token_malformed" Unauthenticated
        "The header of a report over HTTP holds something else than a token.";
    PathNotFound "path_not_found" NotFound
        "There is nothing at this path over HTTP.";
    MethodNotAllowed "method_not_allowed" Unimplemented
        "The path is there, but not for this method of HTTP.";
}

/// The status code of a rejection. What the state forbids is a failed precondition, even where the
/// engine blames the command: the same request may be right for another definition.
impl From<RejectionCode> for Reason {
    fn from(code: RejectionCode) -> Self {
        let name = code.as_str();
        let status = match code {
            RejectionCode::RunIdTaken
            | RejectionCode::KeyExists
            | RejectionCode::StreamExists
            | RejectionCode::GroupExists => Code::AlreadyExists,
            RejectionCode::RequestIdReused | RejectionCode::KeyVersionMismatch => Code::Aborted,
            RejectionCode::InputInvalid | RejectionCode::IdempotencyKeyMissing => {
                Code::FailedPrecondition
            }
            _ => status(code.kind()),
        };
        Self { name, status }
    }
}

fn status(kind: RejectionKind) -> Code {
    match kind {
        RejectionKind::NotFound => Code::NotFound,
        RejectionKind::Invalid => Code::InvalidArgument,
        RejectionKind::Conflict => Code::FailedPrecondition,
        // Starts are checked again before a caller sees this; then the definition changes so fast
        // that only trying again helps.
        RejectionKind::Stale => Code::Unavailable,
        RejectionKind::Exhausted => Code::ResourceExhausted,
        RejectionKind::Internal => Code::Internal,
    }
}
