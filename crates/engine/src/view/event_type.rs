//! The types of history events: the table that defines their published names and the manual's page (W23).

use std::fmt;

/// Defines [`EventType`] from the table: name, published name, when it occurs, its detail and its attributes.
macro_rules! types {
    ($($name:ident $published:literal $when:literal [$detail:literal] [$($attribute:literal)*];)*) => {
        /// The type of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum EventType {
            $(#[doc = $when] $name,)*
        }

        impl EventType {
            /// All of them, in the table's order.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The published name.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $published,)*
                }
            }

            /// When it occurs, as a sentence.
            #[must_use]
            pub fn when(self) -> &'static str {
                match self {
                    $(Self::$name => $when,)*
                }
            }

            /// What the detail contains; empty if it has no detail.
            #[must_use]
            pub fn detail(self) -> &'static str {
                match self {
                    $(Self::$name => $detail,)*
                }
            }

            /// The names of its attributes, including those that are not always present.
            #[must_use]
            pub fn attributes(self) -> &'static [&'static str] {
                match self {
                    $(Self::$name => &[$($attribute),*],)*
                }
            }
        }
    };
}

types! {
    WorkflowStarted "workflow_started" "The run started." [""] ["parent_run_id"];
    ScheduleStarted "schedule_started" "A firing of the workflow's schedule started the run." [""] ["scheduled_at_ms"];
    TriggerStarted "trigger_started" "A firing of a trigger of the workflow started the run."
        ["the stream"] ["stream" "partition" "record_ids"];
    ScopeStarted "scope_started" "A step opened a scope." ["the kind of the scope: `branch`, `item`, `block` or `handler`"] [];
    ScopeEnded "scope_ended" "A scope ended." ["the outcome"] [];
    BranchJoined "branch_joined" "A branch of the step ended." ["the branch"] ["outcome"];
    IterationEnded "iteration_ended" "An iteration of the step ended." ["the index of the item"] ["outcome"];
    SwitchTaken "switch_taken" "A condition of the step was true, or its default was taken." ["the next step or terminal"]
        ["arm"];
    WaitStarted "wait_started" "The step started to wait for a time." ["the step"] ["until_ms"];
    RecordEmitted "record_emitted" "The step appended a record to a stream." ["the stream"] ["record_id"];
    StateChanged "state_changed" "The step or its action wrote to the state." ["the keys"] ["patch"];
    StateJoined "state_joined" "Writes of branches, iterations or a block became part of the state of the run." ["the keys"] [];
    StateRecorded "state_recorded" "The entire state of the run was recorded, when the run began or after a sequential loop." [""] [];
    StepTakenOver "step_taken_over" "The run took over the result of the step from the run that it retries." ["the step"]
        ["outcome"];
    RunBegan "run_began" "The run began after it had waited for its start time, a concurrency key or its locks." [""] [];
    ConcurrencyWaiting "concurrency_waiting" "The run waits because a concurrency key is at its limit." ["the key"]
        ["position"];
    PhaseChanged "phase_changed" "The run entered a phase that precedes its end." ["the phase"] [];
    CompensationStarted "compensation_started" "The compensation of the step started." ["the step"] [];
    CompensationCompleted "compensation_completed" "The compensation of the step completed." ["the step"] [];
    CompensationFailed "compensation_failed" "The compensation of the step failed." ["the step"] ["code"];
    HandlerFailed "handler_failed" "A handler of the run failed." ["the code"] [];
    StepDelayed "step_delayed" "The run enters the step later, because the action before it asked for a delay." ["the step"]
        ["due_at_ms"];
    StepStarted "step_started" "The run entered the step." ["the step"] [];
    StepCompleted "step_completed" "The run left the step, with an outcome." ["the step"] ["outcome"];
    StepCancelled "step_cancelled" "The step was cancelled with its scope." ["the step"] [];
    StepRetry "step_retry" "The step started another attempt." ["the step"] ["attempt"];
    FallbackStarted "fallback_started" "The step's target failed, and its fallback was invoked." ["the fallback's target"]
        ["code"];
    LoopWarning "loop_warning" "The step was visited often." ["the step"] ["visits"];
    StepTimeout "step_timeout" "The step, or an attempt at it, took too long." ["the step"] ["code"];
    RetryScheduled "retry_scheduled" "The step's next attempt was scheduled." ["the step"] ["attempt" "due_at_ms"];
    PollScheduled "poll_scheduled" "The step's next poll was scheduled." ["the step"] ["poll" "due_at_ms"];
    PollExhausted "poll_exhausted" "The step reached its maximum number of polls." ["the step"] ["polls"];
    WaitingForSignal "waiting_for_signal" "The step started to wait for a signal." ["the signal's type"] ["deadline_at_ms"];
    Info "info" "A caller or a task of the run added an info entry." [""] ["number"];
    SignalReceived "signal_received" "A signal arrived." ["its type"] ["signal_id"];
    SignalMatched "signal_matched" "A signal ended the step's wait." ["its type"] [];
    SignalTimeout "signal_timeout" "The step's wait for a signal expired." ["the next step or terminal"] [];
    ApprovalOpened "approval_opened" "The step started to wait for a decision." ["the step"]
        ["approvers" "approvers_count" "quorum" "deadline_at_ms"];
    ApprovalDecided "approval_decided" "The step received a decision." ["`approved` or `rejected`"] ["approved" "actor"];
    ActionNotFound "action_not_found" "The step's action is not registered." ["the action"] [];
    ActionDisabled "action_disabled" "The step's action is disabled." ["the action"] [];
    ChildRefused "child_refused" "The child workflow does not exist, is disabled, or is at a concurrency limit." ["the reason"] [];
    AwaitingAction "awaiting_action" "The step created an action run." ["the action"] ["action_run_id"];
    ActionStarted "action_started" "A worker took the task." ["the worker"] ["action_run_id" "attempt"];
    AwaitingReport "awaiting_report" "The worker accepted the task; its outcome arrives in a report." ["the action run"]
        ["deadline_at_ms"];
    ActionRetryScheduled "action_retry_scheduled" "A task failed, and the action run's next attempt was scheduled."
        ["why the attempt failed"] ["action_run_id" "attempt" "due_at_ms"];
    ActionCompleted "action_completed" "The action run ended." ["its outcome"] ["action_run_id" "code" "message"];
    RunRetried "run_retried" "The next attempt at the run began." ["the run id of the next attempt"] [];
    RunResumed "run_resumed" "The run was resumed." ["the step at which it continues"] ["version" "revision" "previous_version" "previous_revision"];
    ChildStarted "child_started" "A child run started." ["its id"] [];
    ChildCompleted "child_completed" "A child run ended." ["its outcome"] ["child_run_id"];
    PlanExecutorStart "plan_executor_start" "An attempt on an executor of the plan started."
        ["the executor"] ["attempt" "probe"];
    PlanExecutorSuccess "plan_executor_success" "The executor returned `success`." ["the executor"] [];
    PlanExecutorOutcome "plan_executor_outcome" "The executor returned another outcome that ends the plan."
        ["the executor"] ["outcome"];
    PlanExecutorRetry "plan_executor_retry" "The plan retries the same executor." ["the executor"] ["attempt" "due_at_ms"];
    PlanExecutorExhausted "plan_executor_exhausted" "The executor failed, and the plan does not retry it."
        ["the executor"] ["attempts" "code"];
    PlanBreakerSkip "plan_breaker_skip" "The plan skipped the executor because its breaker is open." ["the executor"] ["half_open_at_ms"];
    PlanBreakerOpened "plan_breaker_opened" "The executor's breaker opened." ["the executor"] ["half_open_at_ms"];
    PlanBreakerClosed "plan_breaker_closed" "A probe closed the executor's breaker." ["the executor"] [];
    PlanRateLimited "plan_rate_limited" "The plan skipped the executor because its rate limit is reached."
        ["the executor"] ["available_at_ms"];
    PlanCacheHit "plan_cache_hit" "The plan used a cached result." ["its key"] [];
    PlanFallback "plan_fallback" "The plan used its fallback." ["the outcome"] [];
    WorkflowCompleted "workflow_completed" "The run ended with status `completed`." ["the terminal"] [];
    WorkflowFailed "workflow_failed" "The run ended with status `failed`." ["the terminal"] ["reason"];
    WorkflowCancelled "workflow_cancelled" "The run was cancelled." ["the reason"] ["terminal"];
    WorkflowTimedOut "workflow_timed_out" "The run ended with status `timed_out`."
        ["the reason, otherwise the terminal"] ["terminal"];
    RunQuarantined "run_quarantined" "The run was quarantined because of a bug." [""] [];
    RunReleased "run_released" "The run was released from quarantine." [""] [];
    HistoryTrimmed "history_trimmed" "Replaces the events in the middle of a long history, which were dropped."
        ["which events"] ["first_seq" "last_seq"];
}

impl fmt::Display for EventType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
