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
    WorkflowStarted "workflow_started" "The run began." [""] ["parent_run_id"];
    ScheduleStarted "schedule_started" "A firing of the workflow's schedule began the run." [""] ["scheduled_at_ms"];
    TriggerStarted "trigger_started" "Records of the workflow's trigger began the run."
        ["the stream"] ["stream" "partition" "record_ids"];
    StepStarted "step_started" "The run entered the step." ["the step"] [];
    StepCompleted "step_completed" "The run left the step, with an outcome." ["the step"] ["outcome"];
    StepRetry "step_retry" "The step is executed again." ["the step"] ["attempt"];
    RetryScheduled "retry_scheduled" "The step's next attempt was put off." ["the step"] ["attempt" "due_at_ms"];
    PollScheduled "poll_scheduled" "The step's next poll was put off." ["the step"] ["poll" "due_at_ms"];
    PollExhausted "poll_exhausted" "The step has made all its polls." ["the step"] ["polls"];
    WaitingForSignal "waiting_for_signal" "The run began to wait for a signal." ["the signal's type"] ["deadline_at_ms"];
    SignalReceived "signal_received" "A signal arrived." ["its type"] ["signal_id"];
    SignalMatched "signal_matched" "A signal ended the step's wait." ["its type"] [];
    SignalTimeout "signal_timeout" "The step's wait for a signal expired." ["where that leads"] [];
    ActionNotFound "action_not_found" "The step's action is not registered." ["the action"] [];
    ActionDisabled "action_disabled" "The step's action is disabled." ["the action"] [];
    ChildRefused "child_refused" "The child workflow does not exist, or is disabled." ["why"] [];
    AwaitingAction "awaiting_action" "An action run was made for the step." ["the action"] ["action_run_id"];
    ActionStarted "action_started" "A worker took the task." ["the worker"] ["action_run_id" "attempt"];
    ActionRetryScheduled "action_retry_scheduled" "A task failed, and the action is tried again."
        ["why the attempt failed"] ["action_run_id" "attempt" "due_at_ms"];
    ActionCompleted "action_completed" "The action run ended." ["its outcome"] ["action_run_id" "code" "message"];
    ChildStarted "child_started" "A child run began." ["its id"] [];
    ChildCompleted "child_completed" "A child run ended." ["its outcome"] ["child_run_id"];
    PlanExecutorStart "plan_executor_start" "An attempt on an executor of the plan began."
        ["the executor"] ["attempt" "probe"];
    PlanExecutorSuccess "plan_executor_success" "The executor came back with `success`." ["the executor"] [];
    PlanExecutorOutcome "plan_executor_outcome" "The executor came back with another outcome that ends the plan."
        ["the executor"] ["outcome"];
    PlanExecutorRetry "plan_executor_retry" "The same executor is tried again." ["the executor"] ["attempt" "due_at_ms"];
    PlanExecutorExhausted "plan_executor_exhausted" "The executor ended in an error and is not tried again."
        ["the executor"] ["attempts" "code"];
    PlanBreakerSkip "plan_breaker_skip" "The executor was skipped: its breaker is open." ["the executor"] ["half_open_at_ms"];
    PlanBreakerOpened "plan_breaker_opened" "The executor's breaker opened." ["the executor"] ["half_open_at_ms"];
    PlanBreakerClosed "plan_breaker_closed" "A probe closed the executor's breaker." ["the executor"] [];
    PlanRateLimited "plan_rate_limited" "The executor was skipped: it has had as many calls as it may."
        ["the executor"] ["available_at_ms"];
    PlanAwaitingReport "plan_awaiting_report" "The task was accepted; its outcome comes by a report."
        ["the action run"] ["deadline_at_ms"];
    PlanCacheHit "plan_cache_hit" "A cached result was used." ["its key"] [];
    PlanFallback "plan_fallback" "The plan's fallback was used." ["the outcome"] [];
    WorkflowCompleted "workflow_completed" "The run ended with status `completed`." ["the terminal"] [];
    WorkflowFailed "workflow_failed" "The run ended with status `failed`." ["the terminal"] ["reason"];
    WorkflowCancelled "workflow_cancelled" "The run was cancelled." ["the reason"] ["terminal"];
    WorkflowTimedOut "workflow_timed_out" "The run ended with status `timed_out`."
        ["why, else the terminal"] ["terminal"];
    RunQuarantined "run_quarantined" "A bug was contained in this run, and the run set aside." [""] [];
    RunReleased "run_released" "The run, which a bug had set aside, is in service again." [""] [];
    HistoryTrimmed "history_trimmed" "Stands for the events in the middle of a long history, which were dropped."
        ["which events"] ["first_seq" "last_seq"];
}

impl fmt::Display for EventType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
