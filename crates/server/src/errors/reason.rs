//! The reasons of refusals. Each is a row of a table, so that none exists without a meaning.

use flotilla_engine::{RejectionCode, RejectionKind};
use tonic::Code;

/// The reason of a refusal, in snake case, with its gRPC status. Made only from the two tables: the
/// engine's and [`ServerCode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(super) name: &'static str,
    pub(super) status: Code,
}

/// Makes [`ServerCode`] from the table: name, code, status, meaning.
macro_rules! codes {
    ($($name:ident $code:literal $status:ident $meaning:literal;)*) => {
        /// The server's own reasons, in addition to the engine's.
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
        "The definition has errors; the violations give the position of each error.";
    WhereInvalid "where_invalid" InvalidArgument
        "The expression of `--where` cannot be parsed; the message shows where.";
    ModuleInvalid "module_invalid" InvalidArgument
        "The WebAssembly module is not a valid action.";
    ScheduleNotFound "schedule_not_found" NotFound
        "The workflow has no schedule.";
    KeyNotFound "key_not_found" NotFound
        "The key does not exist, or has expired.";
    StepResultNotFound "step_result_not_found" NotFound
        "The run has not left such a step, or the result of that visit is no longer kept.";
    Overloaded "overloaded" ResourceExhausted
        "The node has too many requests in progress, or the leader has too many commands queued; nothing was done.";
    DiskPressure "disk_pressure" ResourceExhausted
        "The leader's disk, or the disks of too many members, are nearly full; nothing was done.";
    NoLeader "no_leader" Unavailable
        "The cluster has no leader, or the node found none in time; nothing was done.";
    NodeNotMember "node_not_member" Unavailable
        "The node is not a member of a cluster yet; nothing was done.";
    NotFirstMember "not_first_member" FailedPrecondition
        "Only a first member can form a cluster; this node is configured to join one.";
    NotLeader "not_leader" Unavailable
        "Only the leader can serve this request, and this node does not lead; nothing was done.";
    OutcomeUnknown "outcome_unknown" Unavailable
        "No response came in time: the command may have been applied, or may still be applied.";
    EngineVersionTooLow "engine_version_too_low" FailedPrecondition
        "Not every member runs a binary that knows this command yet; nothing was done.";
    NodeCatchingUp "node_catching_up" Unavailable
        "The node has not caught up with the log since its start.";
    NodeDiverged "node_diverged" Unavailable
        "The node's state differs from that of the others, and it has stopped serving.";
    NodeStandstill "node_standstill" Unavailable
        "The node has lost contact with the leader, or applies nothing: it ends what waits there. Another node may serve.";
    NodeDrained "node_drained" Unavailable
        "An operator has drained the node, so it ends waiting calls; send the call to another node.";
    NodeRemoved "node_removed" Unavailable
        "The cluster has removed the node, which is stopping.";
    ShuttingDown "shutting_down" Unavailable
        "The node is stopping.";
    Unavailable "unavailable" Unavailable
        "A cause outside the request failed; a retry may succeed.";
    NodeUnreachable "node_unreachable" FailedPrecondition
        "No node responds at the address of the member, or the node is still starting.";
    NodeMismatch "node_mismatch" FailedPrecondition
        "A different node is reachable at the address of the new member.";
    NodeNotEmpty "node_not_empty" FailedPrecondition
        "The new member has data of another cluster.";
    NodeIdRetired "node_id_retired" FailedPrecondition
        "The id belonged to a removed member: it is never used again.";
    NodeIdInUse "node_id_in_use" AlreadyExists
        "The id belongs to a member at another address.";
    AddressInUse "address_in_use" AlreadyExists
        "The address belongs to another member.";
    NodeNotFound "node_not_found" NotFound
        "The cluster has no such member.";
    NodeNotVoter "node_not_voter" FailedPrecondition
        "The member is a learner, so it cannot lead.";
    NodeLagging "node_lagging" Unavailable
        "The member did not catch up before the deadline; nothing was changed.";
    VoterDrained "voter_drained" FailedPrecondition
        "The voter is drained, so leadership cannot be transferred to it.";
    NoVoterToLead "no_voter_to_lead" FailedPrecondition
        "All other voters are down or drained; nothing was changed.";
    LastVoter "last_voter" FailedPrecondition
        "The member is the last voter.";
    QuorumAtRisk "quorum_at_risk" FailedPrecondition
        "Too few voters are reachable: during or after the change, the cluster could not write. Nothing was changed.";
    MembershipChangeInProgress "membership_change_in_progress" Unavailable
        "Another membership change did not end before the deadline; nothing was changed.";
    LeadershipTransferTimeout "leadership_transfer_timeout" Unavailable
        "The voter is unreachable, or leadership was not transferred before the deadline.";
    BinaryTooOld "binary_too_old" FailedPrecondition
        "The new member's binary is older than the engine version that the cluster has agreed on.";
    BackupInProgress "backup_in_progress" Unavailable
        "Too many concurrent backups on this node.";
    SnapshotTimeout "snapshot_timeout" Unavailable
        "The snapshot was not finished before the deadline; it may still be.";
    HelloTimeout "hello_timeout" DeadlineExceeded
        "The worker opened a stream and sent no hello.";
    PollReplaced "poll_replaced" Unavailable
        "The worker's stream ended because the worker opened a newer one.";
    PollLost "poll_lost" Unavailable
        "The worker's stream ended because the worker or the node fell behind; its tasks are \
         reassigned.";
    BodyTimeout "body_timeout" DeadlineExceeded
        "The request did not arrive in time; nothing was done.";
    TokenMissing "token_missing" Unauthenticated
        "An HTTP report lacks the header `Authorization: Bearer TOKEN`.";
    TokenMalformed "token_malformed" Unauthenticated
        "The `Authorization` header of an HTTP report does not hold a task token.";
    CredentialMalformed "credential_malformed" Unauthenticated
        "The `authorization` of the call, in its metadata or header, does not hold an API token or the token of an issuer, or holds one that is invalid.";
    AccessNotInitialized "access_not_initialized" Unavailable
        "The access mode of the cluster is not known yet: the cluster is new, or the node has not applied the mode; nothing was done.";
    CredentialUncheckable "credential_uncheckable" Unavailable
        "The node does not know the credential, and could not ask the cluster; nothing was done.";
    IdentityUnavailable "identity_unavailable" Unavailable
        "The node could not fetch the keys of the issuer of the token, so it cannot check the token; nothing was done.";
    CredentialAttempts "credential_attempts" ResourceExhausted
        "Too many unknown credentials came from this address in the last second; nothing was done.";
    TaskTokenWrong "task_token_wrong" Unauthenticated
        "The MAC at the end of a task token is wrong; nothing was looked up.";
    KeyUnavailable "key_unavailable" Unavailable
        "The node does not have the secret key that the request needs: its keyring differs from that of another node; nothing was done.";
    PeerNotMember "peer_not_member" PermissionDenied
        "A caller at the peer port of a node has not proved that it is a member; nothing was done.";
    KeyringsDiffer "keyrings_differ" FailedPrecondition
        "A closed cluster needs the same keyring on all voters, but a node has another one, or its keyring is unknown.";
    VoterRequiresToken "voter_requires_token" FailedPrecondition
        "The configuration of a voter requires tokens, so the cluster cannot be opened.";
    PathNotFound "path_not_found" NotFound
        "The HTTP path does not exist.";
    MethodNotAllowed "method_not_allowed" Unimplemented
        "The HTTP path exists, but does not allow this method.";
    MediaTypeUnsupported "media_type_unsupported" InvalidArgument
        "The path does not accept the `Content-Type` of an HTTP request, or the request has a body without one.";
    NotAcceptable "not_acceptable" InvalidArgument
        "The path responds in none of the media types that the `Accept` of the HTTP request names.";
    UriTooLong "uri_too_long" InvalidArgument
        "The path and the query of an HTTP request are too long.";
    PreconditionRequired "precondition_required" FailedPrecondition
        "The request must say which version it replaces, and does not.";
    HostUnknown "host_unknown" FailedPrecondition
        "The `Host` of an HTTP request without a token is neither an IP address nor a name of the node.";
    OriginRefused "origin_refused" PermissionDenied
        "A page of another site has sent a change over HTTP without a token.";
}

/// The status code of a rejection. What the state forbids is a failed precondition, even if the
/// engine blames the command: the same request may be valid for another definition.
impl From<RejectionCode> for Reason {
    fn from(code: RejectionCode) -> Self {
        let name = code.as_str();
        let status = match code {
            RejectionCode::RunIdInUse
            | RejectionCode::KeyExists
            | RejectionCode::StreamExists
            | RejectionCode::GroupExists => Code::AlreadyExists,
            RejectionCode::RequestIdReused
            | RejectionCode::KeyVersionMismatch
            | RejectionCode::QuotaVersionMismatch => Code::Aborted,
            RejectionCode::InputInvalid
            | RejectionCode::ConcurrencyKeyInvalid
            | RejectionCode::TargetInvalid
            | RejectionCode::LocksInvalid
            | RejectionCode::IdempotencyKeyMissing => Code::FailedPrecondition,
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
        // Starts are checked again before a caller sees this; by then the definition changes so
        // fast that only a retry helps.
        RejectionKind::Stale => Code::Unavailable,
        RejectionKind::Exhausted => Code::ResourceExhausted,
        RejectionKind::Unauthenticated => Code::Unauthenticated,
        RejectionKind::Forbidden => Code::PermissionDenied,
        RejectionKind::Internal => Code::Internal,
    }
}
