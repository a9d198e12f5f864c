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
                    $(Self::$name => advice!($($hint)?),)*
                }
            }
        }
    };
}

macro_rules! advice {
    () => {
        None
    };
    ($hint:literal) => {
        Some($hint)
    };
}

codes! {
    WorkflowNotFound "workflow_not_found" NotFound
        "There is no workflow of this name in the namespace."
        => "create it with `flo workflow create -f FILE`";
    VersionNotFound "version_not_found" NotFound
        "The workflow has no such version."
        => "`flo workflow list` shows the versions";
    WorkflowDisabled "workflow_disabled" Conflict
        "The workflow is disabled: it takes no new runs."
        => "enable it with `flo workflow enable NAME`";
    NamespaceMismatch "namespace_mismatch" Invalid
        "The definition names another namespace than the one that it was sent to."
        => "send it to the namespace that it names";
    IdempotencyKeyMissing "idempotency_key_missing" Invalid
        "The definition says `idempotency: required`, and the start has no key."
        => "give --idempotency-key: the definition requires it";
    RunIdInUse "run_id_in_use" Conflict
        "Another run has the id that the caller gave."
        => "give another id, or none";
    RunIdReserved "run_id_reserved" Invalid
        "The id that the caller gave has the form of the cluster's own run ids, `wfrun-…`."
        => "give another id, or none";
    InputValidationStale "input_validation_stale" Stale
        "The workflow was changed while the input was checked against its schema."
        => "try again";
    InputInvalid "input_invalid" Invalid
        "The input breaks the workflow's schema."
        => "`flo workflow show NAME` prints the schema";
    RunNotFound "run_not_found" NotFound
        "There is no run of this id: it never was, or its retention is over."
        => "`flo workflow runs` lists them";
    RunEnded "run_ended" Conflict
        "The run has ended."
        => "`flo workflow status RUN` tells how it ended";
    RunQuarantined "run_quarantined" Conflict
        "A bug was contained in this run, and the run was set aside."
        => "its history says when; `flo cluster quarantine release run RUN` takes it up again";
    ActionRunQuarantined "action_run_quarantined" Conflict
        "A bug was contained in this action run, and it was set aside."
        => "`flo cluster quarantine release action_run ID` takes it up again";
    SignalLimitExceeded "signal_limit_exceeded" Exhausted
        "As many signals of the run wait for a step as may, or as many bytes."
        => "send it again once the run has taken some of those that wait";
    ActivationStale "activation_stale" Conflict
        "The step does not wait any more for what a driver of the cluster brings.";
    ActionNotFound "action_not_found" NotFound
        "No action of this name is registered in the namespace."
        => "register it with `flo action register NAME`";
    ActionDisabled "action_disabled" Conflict
        "The action is disabled."
        => "enable it with `flo action enable NAME`";
    ActionRunNotFound "action_run_not_found" NotFound
        "There is no action run of this id: it never was, or its retention is over."
        => "`flo action runs NAME` lists them";
    ActionRunEnded "action_run_ended" Conflict
        "The action run is over: the report or cancel is late, or was sent before."
        => "`flo action status ID` tells how it ended";
    LeaseLost "lease_lost" Conflict
        "The lease expired, and the task was given to another worker."
        => "touch the lease in time, or register a longer --timeout-ms";
    TaskAlreadyAccepted "task_already_accepted" Conflict
        "The task was accepted, so its lease is over and its outcome comes by a report."
        => "report with `flo action report TOKEN --outcome O`";
    TaskNotTracked "task_not_tracked" Conflict
        "The worker accepted a task whose executor has no `tracking: {mode: async}`."
        => "complete or fail the task instead";
    ReportTokenMismatch "report_token_mismatch" Conflict
        "The token is not that of the attempt whose report is awaited."
        => "each attempt has a token of its own: use the last";
    PlanNotFound "plan_not_found" NotFound
        "The workflow has no plan of this name."
        => "`flo workflow show NAME` prints the definition";
    ExecutorNotFound "executor_not_found" NotFound
        "The plan has no executor of this name."
        => "`flo workflow show NAME` prints the definition";
    OutcomeReserved "outcome_reserved" Invalid
        "A handler gave an outcome that only the engine gives, such as `target_not_found`."
        => "give the outcome another name";
    WorkerNotFound "worker_not_found" NotFound
        "The worker is not registered: it never was, or it was silent for too long."
        => "`flo worker list` shows those that are; a worker that is told this registers again";
    WorkerReplaced "worker_replaced" Conflict
        "A newer process has registered under the worker's id."
        => "two processes use one id: give each its own --worker-id";
    WorkerLimitExceeded "worker_limit_exceeded" Exhausted
        "The namespace has as many workers as it may have."
        => "`flo worker list` shows them";
    TimerStale "timer_stale" Conflict
        "The timer that a driver of the cluster fires has fired, or was taken back.";
    TimerNotDue "timer_not_due" Conflict
        "The timer that a driver of the cluster fires is not due yet.";
    EntryFull "entry_full" Stale
        "The log entry holds no more work: the cluster's own drivers try again.";
    FiringStale "firing_stale" Conflict
        "The schedule that a driver of the cluster fires has moved on, or stands still.";
    FiringNotDue "firing_not_due" Conflict
        "The firing that a driver of the cluster makes is not due yet.";
    FiringOutOfOrder "firing_out_of_order" Invalid
        "The firing that a driver of the cluster plans lies before the one that it follows.";
    IdempotencyKeyReserved "idempotency_key_reserved" Invalid
        "The idempotency key begins with `flo:`, as those of the cluster's own starts do."
        => "give a key that begins otherwise";
    DeadLetterNotFound "dead_letter_not_found" NotFound
        "The action has no such dead letter: it was requeued, purged or dropped."
        => "`flo action dlq list NAME` lists them";
    RequestIdReused "request_id_reused" Conflict
        "The request id came before, with other content."
        => "draw a new id for each request";
    TooLarge "too_large" Invalid
        "A payload, a definition, a module or the request as a whole is over its limit."
        => "keep large things elsewhere, and pass where they are";
    Internal "internal" Internal
        "A bug in the server; nothing was changed."
        => "this is a bug: please report it with the node's log";
    RequestIdLimitExceeded "request_id_limit_exceeded" Exhausted
        "The cluster remembers as many request ids as it may, and needs them all."
        => "nothing was done; try again, with the same request id, in a while";
    KeyExists "key_exists" Conflict
        "The key is there, and the caller asked that it be not."
        => "read it with `flo kv get KEY`";
    KeyVersionMismatch "key_version_mismatch" Conflict
        "The key has another version than the one that the caller had read."
        => "read the key again with `flo kv get KEY`";
    LimitExceeded "limit_exceeded" Exhausted
        "There are as many of something as there may be.";
    NamespaceNotEmpty "namespace_not_empty" Conflict
        "The namespace that was to be deleted is not empty; the message says what is left."
        => "delete its keys, streams and actions, cancel its action runs, purge its dead letters and stop its workers; what has ended goes in time, workflows stay";
    NamespaceIsDefault "namespace_is_default" Conflict
        "The namespace `default` cannot be deleted.";
    StreamNotFound "stream_not_found" NotFound
        "There is no stream of this name in the namespace."
        => "create it with `flo stream create NAME`, or append to it";
    StreamExists "stream_exists" Conflict
        "The stream is there, with other settings."
        => "`flo stream info NAME` shows its settings";
    PartitionNotFound "partition_not_found" Invalid
        "The stream has no such partition."
        => "`flo stream info NAME` shows how many it has";
    RecordsMissing "records_missing" Invalid
        "The call names no record.";
    GroupNotFound "group_not_found" NotFound
        "The stream has no group of this name."
        => "create it with `flo stream group create STREAM GROUP`, or join it";
    GroupExists "group_exists" Conflict
        "The group is there, with other settings."
        => "`flo stream group info STREAM GROUP` shows its settings";
    ConsumerNotFound "consumer_not_found" NotFound
        "The consumer has not joined the group, or was silent for too long."
        => "join the group again";
    DeliveryEnded "delivery_ended" Conflict
        "None of the records is in the consumer's hands any more: their time is over, or they are settled."
        => "touch records in time, or create the group with a longer ack timeout";
    GroupInUse "group_in_use" Conflict
        "The trigger names a group that others read with."
        => "name another one with `consumer_group:` in the trigger";
    GroupOwnedByTrigger "group_owned_by_trigger" Conflict
        "The group belongs to the trigger of a workflow."
        => "use another group, or remove the workflow's trigger";
    TriggerFiringStale "trigger_firing_stale" Conflict
        "The trigger that a driver of the cluster fires has moved on, or stands still.";
    BatchNotDue "batch_not_due" Conflict
        "The batch that a driver of the cluster fires may still grow.";
    WorkerHealthy "worker_healthy" Conflict
        "The worker that a driver of the cluster takes for gone was heard again.";
    ConsumerReplaced "consumer_replaced" Conflict
        "A newer process has joined the group under the consumer's name."
        => "two processes use one name: give each consumer its own";
    StreamQuarantined "stream_quarantined" Conflict
        "A bug was contained in this stream's timer, and the stream was set aside: it can be read and deleted."
        => "take it up again with `flo cluster quarantine release stream NAME`, or read what it holds and delete it";
    GroupQuarantined "group_quarantined" Conflict
        "A bug was contained in this group's timer, and the group was set aside: it can be looked at and deleted."
        => "take it up again with `flo cluster quarantine release group STREAM/GROUP`, or delete it";
    ActionRunOfStep "action_run_of_step" Conflict
        "The action run that was to be cancelled belongs to a run."
        => "cancel the run with `flo workflow cancel RUN`";
    WorkflowsTooMany "workflows_too_many" Exhausted
        "The namespace has as many workflows as it may have."
        => "create further workflows in another namespace";
    RevisionsTooMany "revisions_too_many" Exhausted
        "The workflow has as many revisions, or as many bytes of them, as it may have."
        => "create the definition under another name; content that is stored already can still be made the latest";
    QuarantineNotFound "quarantine_not_found" NotFound
        "Nothing of this kind and name is set aside."
        => "`flo cluster quarantine list` shows what is";
}

impl fmt::Display for RejectionCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
