//! Rejection codes: the table that defines codes, kinds, hints and the manual's page of errors.

use std::fmt;

/// The kind of a rejection, which interfaces map to their status codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionKind {
    /// Something that the command names does not exist.
    NotFound,
    /// The command itself is invalid.
    Invalid,
    /// The current state does not allow the command.
    Conflict,
    /// The command may succeed if it is sent again after following the hint.
    Stale,
    /// A limit is reached.
    Exhausted,
    /// The caller must show another credential.
    Unauthenticated,
    /// The credential does not permit the command.
    Forbidden,
    /// A bug.
    Internal,
}

/// Defines [`RejectionCode`] from the table: name, code, kind, meaning and, optionally, hint.
macro_rules! codes {
    ($($name:ident $code:literal $kind:ident $meaning:literal $(=> $hint:literal)?;)*) => {
        /// The stable code of a [`Rejection`](crate::Rejection), by which programs distinguish rejections.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum RejectionCode {
            $(#[doc = $meaning] $name,)*
        }

        impl RejectionCode {
            /// All codes, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published name, in snake case.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $code,)*
                }
            }

            /// The kind of rejection.
            #[must_use]
            pub fn kind(self) -> RejectionKind {
                match self {
                    $(Self::$name => RejectionKind::$kind,)*
                }
            }

            /// The meaning, as a sentence for people.
            #[must_use]
            pub fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => $meaning,)*
                }
            }

            /// What the caller can do, if anything.
            #[must_use]
            pub fn hint(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => hint!($($hint)?),)*
                }
            }
        }
    };
}

macro_rules! hint {
    () => {
        None
    };
    ($hint:literal) => {
        Some($hint)
    };
}

codes! {
    WorkflowNotFound "workflow_not_found" NotFound
        "The namespace has no workflow with this name."
        => "`flo workflow list` shows the workflows; create one with `flo workflow create -f FILE`";
    VersionNotFound "version_not_found" NotFound
        "The workflow has no such version."
        => "`flo workflow revisions WORKFLOW` lists the revisions of each version";
    RevisionNotFound "revision_not_found" NotFound
        "The version of the workflow has no revision with this number."
        => "`flo workflow revisions WORKFLOW` lists the revisions of each version";
    WorkflowDisabled "workflow_disabled" Conflict
        "The workflow is disabled: it starts no new runs."
        => "enable it with `flo workflow enable NAME`";
    NamespaceMismatch "namespace_mismatch" Invalid
        "The definition names a different namespace from the one that it was sent to."
        => "send it to the namespace that it names";
    IdempotencyKeyMissing "idempotency_key_missing" Invalid
        "The definition sets `idempotency: required`, and the request gives no idempotency key."
        => "give an idempotency key with --idempotency-key";
    RunIdInUse "run_id_in_use" Conflict
        "A run with the given id already exists."
        => "use another run id, or omit it";
    RunIdReserved "run_id_reserved" Invalid
        "The given run id begins with `wfrun-`, which is reserved for the ids that the cluster generates."
        => "use another run id, or omit it";
    InputValidationStale "input_validation_stale" Stale
        "The workflow changed while the input was validated against its schema."
        => "retry";
    InputInvalid "input_invalid" Invalid
        "The input does not match the workflow's schema."
        => "`flo workflow show NAME` prints the schema";
    RunLimitReached "run_limit_reached" Conflict
        "A concurrency key of the workflow is at its limit, or too many runs wait for it."
        => "wait until a run with this key ends, or cancel one with `flo workflow cancel RUN`";
    ConcurrencyKeyInvalid "concurrency_key_invalid" Invalid
        "A concurrency key of the workflow cannot be computed from this input and metadata."
        => "change the input, the metadata or the expression in `concurrency.key`";
    TargetActive "target_active" Conflict
        "An open run has the same target and the same input."
        => "wait until that run ends, or cancel it with `flo workflow cancel RUN`";
    TargetLocked "target_locked" Conflict
        "The target matches a lock of an open run."
        => "wait until that run ends, or cancel it with `flo workflow cancel RUN`";
    LocksTooMany "locks_too_many" Conflict
        "The open runs of the namespace hold as many different locks as it can have."
        => "wait until runs with locks end, or use the same pattern in several workflows";
    TargetInvalid "target_invalid" Invalid
        "The target of the run cannot be computed from this input and metadata, or is too long."
        => "change the input, the metadata or the value of `target`";
    LocksInvalid "locks_invalid" Invalid
        "A lock of the run cannot be computed from this input and metadata, or is not a regular expression."
        => "change the input, the metadata or the value of `locks`";
    RunNotFound "run_not_found" NotFound
        "The run does not exist: it was never started, or its retention period has ended."
        => "`flo workflow runs` lists the runs";
    RunEnded "run_ended" Conflict
        "The run has ended."
        => "`flo workflow status RUN` shows how it ended";
    RunEnding "run_ending" Conflict
        "The end of the run is already decided: its compensations or its handler are being executed."
        => "wait for the run to end, or skip the rest with `flo workflow cancel RUN --force`";
    RunRetrying "run_retrying" Conflict
        "Another attempt at the run will begin: what the last one has done is being undone."
        => "send the signal again when the next attempt has begun; `flo workflow status RUN` shows it as `next_attempt`";
    RunOpen "run_open" Conflict
        "The run has not ended."
        => "only a run that has ended can be resumed or retried; `flo workflow status RUN` shows what an open one waits for";
    RunCompleted "run_completed" Conflict
        "The run has completed: there is nothing to continue."
        => "start a new run with `flo workflow retry RUN`";
    RunSuperseded "run_superseded" Conflict
        "Another attempt at the run has begun."
        => "name the last attempt, which `flo workflow status RUN` shows";
    RunCompensated "run_compensated" Conflict
        "Compensations have undone the effects of steps of the run."
        => "start a new run from the first step with `flo workflow retry RUN`";
    ParentOpen "parent_open" Conflict
        "The parent of the run is open: only the parent can continue it."
        => "wait until the parent has ended, and resume the parent";
    ResumeStepNeeded "resume_step_needed" Invalid
        "A step that succeeded led to the end of the run."
        => "name the step to continue with: `flo workflow resume RUN --from STEP`";
    StepNotVisited "step_not_visited" Invalid
        "The run cannot continue with the step: it does not exist, it is inside another step or a handler, or the run has not visited it."
        => "`flo workflow history RUN` shows the steps that it has visited";
    WorkflowDrift "workflow_drift" Conflict
        "The steps of the revision differ from those of the run, or a compensation that the run may need is missing."
        => "create a revision with the same steps and compensations; with --force, only those that the run needs must be the same; or start a new run with `flo workflow retry RUN --latest`, and add `--from STEP --force` to begin at a later step";
    RunRevisionsTooMany "run_revisions_too_many" Conflict
        "The run has already changed its revision the maximum number of times."
        => "resume the run without --latest or --version, or start a new run with `flo workflow retry RUN --latest`";
    ResumeTooLarge "resume_too_large" Conflict
        "The run has too many results, scopes, compensations and signals to assign to the steps of another revision."
        => "create a revision with the same steps, or start a new run with `flo workflow retry RUN --latest --from STEP --force`";
    HistoryTrimmed "history_trimmed" Conflict
        "The history of the run no longer contains all events up to its first visit to the step."
        => "start the new run from the first step: `flo workflow retry RUN`, without --from";
    ResultsTooLarge "results_too_large" Conflict
        "The results and the state that the new run would take over are too large."
        => "start the new run from an earlier step, or from the first step: `flo workflow retry RUN`, without --from";
    ScopeNotFound "scope_not_found" NotFound
        "The run cannot have a scope with this path."
        => "`flo workflow status RUN` shows the paths of the open scopes";
    ScopeEnded "scope_ended" Conflict
        "The scope has ended."
        => "`flo workflow status RUN` shows the paths of the open scopes";
    ApprovalNotOpen "approval_not_open" Conflict
        "No such step waits for a decision: it has not been entered, it has ended, or another visit is current."
        => "`flo workflow status RUN` shows the steps that wait for an approval";
    StepNotWaiting "step_not_waiting" Conflict
        "No such step waits for a report: no worker has accepted its task, its outcome has already been reported, or another visit is current."
        => "`flo workflow status RUN` shows the steps that wait for a report";
    ScopeNeeded "scope_needed" Invalid
        "Several steps of the run wait for a decision or a report."
        => "name the step, its scope with --scope, or both; `flo workflow status RUN` shows them";
    SignalTypeReserved "signal_type_reserved" Invalid
        "Signal types that begin with `approval.` are reserved."
        => "use another type; to approve a step, use `flo workflow approve RUN`";
    RunQuarantined "run_quarantined" Conflict
        "The run is quarantined because of a bug."
        => "release it with `flo cluster quarantine release run RUN`; its history shows when it was quarantined";
    ActionRunQuarantined "action_run_quarantined" Conflict
        "The action run is quarantined because of a bug."
        => "release it with `flo cluster quarantine release action_run ID`";
    SignalLimitExceeded "signal_limit_exceeded" Exhausted
        "The signals that wait in the run have reached their limit in number or bytes."
        => "send the signal again after the run has consumed some of its waiting signals";
    ActivationStale "activation_stale" Conflict
        "The step no longer waits for this command, which a driver of the cluster proposed.";
    ActionNotFound "action_not_found" NotFound
        "The namespace has no action with this name."
        => "register it with `flo action register NAME`";
    ActionDisabled "action_disabled" Conflict
        "The action is disabled."
        => "enable it with `flo action enable NAME`";
    ActionRunNotFound "action_run_not_found" NotFound
        "The action run does not exist: it was never created, or its retention period has ended."
        => "`flo action runs NAME` lists the action runs";
    ActionRunEnded "action_run_ended" Conflict
        "The action run has ended: the report or the cancellation is late or repeated."
        => "`flo action status ID` shows how it ended";
    LeaseLost "lease_lost" Conflict
        "The token's lease has expired or was replaced by another lease."
        => "extend the lease before it expires, or register the action with a longer --timeout-ms";
    TaskAlreadyAccepted "task_already_accepted" Conflict
        "The task was already accepted: its lease has ended, and its outcome arrives in a report."
        => "report the outcome with `flo action report TOKEN --outcome O`";
    TaskCancelled "task_cancelled" Conflict
        "The task is cancelled: its lease is not extended."
        => "stop the work, then complete or fail the task: until then, or until the lease expires, the run waits";
    TaskWithoutRun "task_without_run" Conflict
        "The task belongs to a stand-alone action run, which has no info entries.";
    TaskNotTracked "task_not_tracked" Conflict
        "Neither the step nor the executor of the task has `tracking: {mode: async}`, so the task cannot be accepted or reported."
        => "complete or fail the task instead";
    ReportTokenMismatch "report_token_mismatch" Conflict
        "The token is not the one of the accepted attempt, or lacks the MAC that its worker received."
        => "each attempt has its own token: use the one of the attempt that was accepted";
    PlanNotFound "plan_not_found" NotFound
        "The workflow has no plan with this name."
        => "`flo workflow show NAME` prints the definition";
    ExecutorNotFound "executor_not_found" NotFound
        "The plan has no executor with this name."
        => "`flo workflow show NAME` prints the definition";
    OutcomeReserved "outcome_reserved" Invalid
        "A handler returned an outcome that is reserved for the engine, such as `target_not_found`."
        => "return another outcome";
    WorkerNotFound "worker_not_found" NotFound
        "The worker is not registered. A worker that receives this code must register again."
        => "`flo worker list` shows the registered workers";
    WorkerReplaced "worker_replaced" Conflict
        "A newer process has registered with the same worker id."
        => "give each process its own --worker-id";
    WorkerIdTaken "worker_id_taken" Conflict
        "The worker id belongs to a healthy worker of another identity, or to the embedded worker of a node."
        => "give the worker another --worker-id; the id of a worker becomes free when the worker deregisters or becomes unhealthy";
    WorkerLimitExceeded "worker_limit_exceeded" Exhausted
        "The namespace has reached its limit of workers."
        => "stop workers, or use another namespace; `flo worker list` shows the workers";
    TimerStale "timer_stale" Conflict
        "The timer that a driver of the cluster fires has already fired, or was cleared.";
    TimerNotDue "timer_not_due" Conflict
        "The timer that a driver of the cluster fires is not due yet.";
    EntryFull "entry_full" Stale
        "The log entry had no budget left for this command, and neither had the later entries in which it was retried."
        => "retry";
    FiringStale "firing_stale" Conflict
        "The schedule that a driver of the cluster fires waits for another firing, or is inactive.";
    FiringNotDue "firing_not_due" Conflict
        "The firing that a driver of the cluster proposes is not due yet.";
    FiringOutOfOrder "firing_out_of_order" Invalid
        "The next firing that a driver of the cluster proposes is not later than the previous one.";
    IdempotencyKeyReserved "idempotency_key_reserved" Invalid
        "The idempotency key begins with `flo:`, which is reserved for the runs that the cluster starts."
        => "use a key that does not begin with `flo:`";
    DeadLetterNotFound "dead_letter_not_found" NotFound
        "The dead letter does not exist: it was requeued, purged or dropped."
        => "`flo action dlq list NAME` lists the dead letters";
    RequestIdReused "request_id_reused" Conflict
        "The request id was already used for a different request."
        => "generate a new id for each request";
    TooLarge "too_large" Invalid
        "A payload, a definition, a module or the whole request exceeds its limit."
        => "store large data elsewhere and pass a reference to it";
    Internal "internal" Internal
        "A bug in the server; nothing was changed."
        => "report this bug, with the node's log";
    RequestIdLimitExceeded "request_id_limit_exceeded" Exhausted
        "The cluster has reached its limit of remembered request ids, and the namespace has used up its share; nothing was done."
        => "retry later, with the same request id; an operator can raise the limit with `flo cluster set`";
    RequestTooOld "request_too_old" Conflict
        "The request id was made more than five minutes before the cluster's time, and the cluster does not remember it; nothing was done now."
        => "check whether an earlier copy of the request was applied, then use a new id; if new requests are rejected too, compare the clocks of the caller and the nodes";
    KeyExists "key_exists" Conflict
        "The key already exists, and the request requires that it does not."
        => "read it with `flo kv get KEY`";
    KeyVersionMismatch "key_version_mismatch" Conflict
        "The key's version differs from the one that the request expects."
        => "read the key again with `flo kv get KEY`";
    LimitExceeded "limit_exceeded" Exhausted
        "A limit is reached; the message names it.";
    NamespaceNotEmpty "namespace_not_empty" Conflict
        "The namespace cannot be deleted because it is not empty; the message lists what it contains."
        => "delete its workflows, keys, streams and actions, cancel its runs and action runs, purge its dead letters and stop its workers; ended runs and action runs are deleted when their retention ends";
    QuotaExceeded "quota_exceeded" Exhausted
        "The request would exceed a quota of its namespace or tree, which the message names; nothing was done."
        => "a rate has room again after the time in `RetryInfo`; for everything else, end or delete something: `flo ns quota show` shows the limits and what is used";
    QuotaVersionMismatch "quota_version_mismatch" Conflict
        "The quota has changed since it was read."
        => "read it again with `flo ns quota show`";
    QuotaDimensionInvalid "quota_dimension_invalid" Invalid
        "The quota has a limit that its namespace or tree cannot have.";
    NamespaceNotFound "namespace_not_found" NotFound
        "The namespace does not exist, or the caller has no rights in it; nothing was looked up."
        => "`flo ns list` lists the namespaces";
    NamespaceIsDefault "namespace_is_default" Conflict
        "The namespace `default` cannot be deleted.";
    StreamNotFound "stream_not_found" NotFound
        "The namespace has no stream with this name."
        => "create it with `flo stream create NAME`, or append to it";
    StreamExists "stream_exists" Conflict
        "The stream already exists, with different settings."
        => "`flo stream info NAME` shows its settings";
    PartitionNotFound "partition_not_found" Invalid
        "The stream has no such partition."
        => "`flo stream info NAME` shows the number of partitions";
    RecordsMissing "records_missing" Invalid
        "The request contains no records.";
    GroupNotFound "group_not_found" NotFound
        "The stream has no group with this name."
        => "create it with `flo stream group create STREAM GROUP`, or join it";
    GroupExists "group_exists" Conflict
        "The group already exists, with different settings."
        => "`flo stream group info STREAM GROUP` shows its settings";
    ConsumerNotFound "consumer_not_found" NotFound
        "The consumer has not joined the group, or has expired."
        => "join the group again";
    DeliveryEnded "delivery_ended" Conflict
        "None of the records is still in flight: their ack deadline has passed, or they were acked or returned."
        => "touch the records before their ack deadline, or create the group with a longer ack timeout";
    GroupInUse "group_in_use" Conflict
        "The group that the trigger names is used by consumers or by another trigger."
        => "name another group with `consumer_group:` in the trigger";
    GroupOwnedByTrigger "group_owned_by_trigger" Conflict
        "The group belongs to the trigger of a workflow."
        => "use another group, or remove the workflow's trigger";
    TriggerFiringStale "trigger_firing_stale" Conflict
        "The trigger that a driver of the cluster fires is at another position, or is inactive.";
    BatchNotDue "batch_not_due" Conflict
        "The batch that a driver of the cluster fires may still grow.";
    WorkerHealthy "worker_healthy" Conflict
        "The worker that a driver of the cluster found unhealthy has sent a heartbeat since.";
    ConsumerReplaced "consumer_replaced" Conflict
        "A newer process has joined the group with the same consumer name."
        => "give each process its own consumer name";
    StreamQuarantined "stream_quarantined" Conflict
        "The stream is quarantined because of a bug: it can be read and deleted."
        => "release it with `flo cluster quarantine release stream NAME`, or read its records and delete it";
    GroupQuarantined "group_quarantined" Conflict
        "The group is quarantined because of a bug: it can be inspected and deleted."
        => "release it with `flo cluster quarantine release group STREAM/GROUP`, or delete it";
    ActionRunOfStep "action_run_of_step" Conflict
        "The action run to cancel belongs to a run."
        => "cancel the run with `flo workflow cancel RUN`";
    WorkflowsTooMany "workflows_too_many" Exhausted
        "The namespace has reached its limit of workflows."
        => "delete workflows with `flo workflow delete NAME`, or create further ones in another namespace";
    RevisionsTooMany "revisions_too_many" Exhausted
        "The revisions of the workflow have reached their limit in number or bytes."
        => "create the definition under another name, or delete the workflow with `flo workflow delete NAME`; a revision that is already stored can still become the latest";
    WorkflowHasRuns "workflow_has_runs" Conflict
        "The workflow to delete has runs, open or ended."
        => "cancel the open ones with `flo workflow cancel RUN`; ended runs are deleted when their retention ends";
    WorkflowBeingDeleted "workflow_being_deleted" Conflict
        "The workflow is being deleted: a part of it is still stored."
        => "complete the deletion with `flo workflow delete NAME`, then create the workflow";
    QuarantineNotFound "quarantine_not_found" NotFound
        "No item of this kind and name is quarantined."
        => "`flo cluster quarantine list` shows the quarantined items";
    CredentialMissing "credential_missing" Unauthenticated
        "The request shows no credential, but the node or the closed cluster requires one."
        => "show an API token: `flo` reads it from $FLO_TOKEN or --token-file, other clients send it as `authorization: Bearer TOKEN`; with TLS, a client certificate suffices";
    CredentialUnknown "credential_unknown" Unauthenticated
        "The cluster has no such credential: its id or its secret is wrong, or it ended long ago."
        => "check the token, or ask an administrator for another one";
    CredentialExpired "credential_expired" Unauthenticated
        "The API token or the client certificate has expired."
        => "renew the certificate, or ask an administrator for another token: `flo token create`";
    CredentialRevoked "credential_revoked" Unauthenticated
        "The API token was revoked."
        => "ask an administrator for another one: `flo token create`";
    SubjectBlocked "subject_blocked" Unauthenticated
        "An administrator has blocked the subject of the client certificate."
        => "ask an administrator: `flo auth blocks` shows the blocked subjects, `flo auth unblock SUBJECT` ends a block";
    PermissionDenied "permission_denied" Forbidden
        "The credential does not permit this call here."
        => "`flo auth whoami` shows what the credential may do; an administrator can create a token with another role, or bind the subject of a client certificate to it";
    GrantExceedsOwn "grant_exceeds_own" Forbidden
        "A grant of the new credential permits more than the credential that creates it."
        => "give it a part of your own grants, which `flo auth whoami` shows";
    NotAnApprover "not_an_approver" Forbidden
        "The caller may not decide this approval: it is not one of the approvers of the step."
        => "`flo auth whoami` shows the identity and the approver roles of the caller; the definition of the step names its approvers";
    TokenApprovesInvalid "token_approves_invalid" Invalid
        "The token or the binding has too many approver roles.";
    GrantOutOfScope "grant_out_of_scope" Invalid
        "A token or a binding of a namespace has a grant that holds elsewhere too."
        => "use --cluster";
    TokenGrantsInvalid "token_grants_invalid" Invalid
        "A token or a binding needs at least one grant and can have a limited number; the message gives the limit."
        => "give the grants with --role ROLE@NAMESPACE";
    TokenNotFound "token_not_found" NotFound
        "The namespace, or the cluster, has no API token with this id."
        => "`flo token list` shows the tokens of a namespace, `flo token list --cluster` those of the cluster";
    BindingNotFound "binding_not_found" NotFound
        "The subject has no binding in the namespace, or in the cluster."
        => "`flo auth bindings` shows the bindings of a namespace, `flo auth bindings --cluster` those of the cluster";
    TokenEnded "token_ended" Conflict
        "The API token has expired or was revoked, so it cannot be rotated."
        => "create another one with `flo token create`";
    TokenIdTaken "token_id_taken" Conflict
        "An API token with this id exists."
        => "create the token with another id";
    TokenSecretTaken "token_secret_taken" Conflict
        "An API token with this secret exists."
        => "draw another secret";
    AccessNotBootstrapped "access_not_bootstrapped" Conflict
        "The cluster cannot be closed by a caller that shows no token, because it could not be administered afterwards."
        => "create a token with `flo token create NAME --cluster --role cluster-admin` and show it";
    SettingOutOfRange "setting_out_of_range" Invalid
        "The value of a cluster setting is out of range; the message gives the value and the range.";
}

impl fmt::Display for RejectionCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
