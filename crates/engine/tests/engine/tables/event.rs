//! Events of a run's history.

use super::{error, plan, result};
use crate::samples;
use flotilla_engine::definition::{
    BuiltInTerminal, StepIndex, Target, TerminalIndex, TriggerIndex,
};
use flotilla_engine::ids::{ActionRunNumber, StateKey};
use flotilla_engine::rows::{EventKind, Phase, RunRevisionChange, StepTimeout};

/// One event of each kind, in the order of the enum.
pub(crate) fn events() -> Vec<EventKind> {
    let mut events = step_events();
    events.extend(action_events());
    events.extend(end_events());
    events.extend(plan::events().into_iter().map(EventKind::Plan));
    events.push(EventKind::ScheduleStarted { firing_ms: 1_000 });
    events.push(EventKind::TriggerStarted {
        trigger: TriggerIndex(0),
        partition: 1,
        records: vec![samples::record_id()],
    });
    events.push(EventKind::Info { number: 3 });
    events.push(EventKind::StateJoined {
        keys: vec![StateKey::new("sum").expect("a key")],
        writes: samples::payload(),
        removed: vec!["old".to_owned()],
    });
    events.push(EventKind::StateRecorded {
        state: samples::payload(),
    });
    events.push(EventKind::StepTakenOver(Box::new(result())));
    events.push(EventKind::RunReleased);
    events.extend(scope_events());
    events
}

fn scope_events() -> Vec<EventKind> {
    let outcome = samples::outcome();
    vec![
        EventKind::StepCancelled,
        EventKind::ScopeStarted,
        EventKind::ScopeEnded {
            outcome: outcome.clone(),
        },
        EventKind::WaitStarted { until_ms: 8_000 },
        EventKind::StepDelayed { due_ms: 8_500 },
        EventKind::PhaseChanged {
            phase: Phase::OnError,
        },
        EventKind::CompensationStarted,
        EventKind::CompensationCompleted,
        EventKind::CompensationFailed {
            code: "gone".to_owned(),
        },
        EventKind::HandlerFailed {
            code: "phase_timeout".to_owned(),
        },
        EventKind::AwaitingReport {
            action_run: ActionRunNumber(9),
            deadline_at_ms: Some(5_000),
        },
        EventKind::IterationEnded {
            index: 3,
            outcome: samples::outcome(),
        },
        EventKind::RecordEmitted {
            stream: samples::stream(),
            id: samples::record_id(),
        },
        EventKind::StateChanged {
            keys: vec![samples::name("total")],
            writes: samples::payload(),
            is_patch: true,
        },
        EventKind::SwitchTaken {
            arm: Some(2),
            target: Target::Step(StepIndex(1)),
        },
        EventKind::BranchJoined {
            position: 0,
            outcome,
        },
    ]
}

fn step_events() -> Vec<EventKind> {
    let payload = samples::payload();
    let signal_type = samples::signal_type();
    vec![
        EventKind::WorkflowStarted {
            input: payload,
            parent: Some(samples::run_id()),
        },
        EventKind::RunBegan,
        EventKind::ConcurrencyWaiting {
            key: "\"vm-1\"".to_owned(),
            position: 2,
        },
        EventKind::StepStarted,
        EventKind::StepCompleted {
            outcome: samples::outcome(),
            output: Some(payload),
        },
        EventKind::StepRetry { attempt: 2 },
        EventKind::FallbackStarted {
            code: "fraud".to_owned(),
        },
        EventKind::LoopWarning { visits: 100 },
        EventKind::StepTimeout {
            timeout: StepTimeout::Attempt,
        },
        EventKind::RetryScheduled {
            attempt: 2,
            due_ms: 5_000,
        },
        EventKind::PollScheduled {
            poll: 1,
            due_ms: 5_000,
        },
        EventKind::PollExhausted { polls: 10 },
        EventKind::WaitingForSignal {
            signal_type: signal_type.clone(),
            deadline_at_ms: Some(5_000),
        },
        EventKind::SignalReceived {
            signal_type: signal_type.clone(),
            id: Some(samples::signal_id()),
            payload,
        },
        EventKind::SignalMatched { signal_type },
        EventKind::ApprovalOpened {
            approvers: vec![samples::approver()],
            approvers_count: 1,
            quorum: 2,
            deadline_at_ms: Some(5_000),
        },
        EventKind::ApprovalDecided {
            is_approved: true,
            actor: Some(samples::identity()),
        },
        EventKind::SignalTimeout {
            target: Target::Custom(TerminalIndex(0)),
        },
    ]
}

fn action_events() -> Vec<EventKind> {
    let action_run = ActionRunNumber(9);
    let action = samples::action;
    vec![
        EventKind::ActionNotFound { action: action() },
        EventKind::ActionDisabled { action: action() },
        EventKind::ChildRefused {
            detail: "why".to_owned(),
        },
        EventKind::AwaitingAction {
            action: action(),
            action_run,
        },
        EventKind::ActionStarted {
            action_run,
            worker: samples::worker(),
            attempt: 1,
        },
        EventKind::ActionRetryScheduled {
            action_run,
            attempt: 2,
            due_ms: 5_000,
            message: "why".to_owned(),
        },
        EventKind::ActionCompleted {
            action_run,
            outcome: samples::outcome(),
            error: Some(error()),
        },
        EventKind::RunRetried {
            next: samples::run_id(),
        },
        EventKind::RunResumed {
            from: Some(StepIndex(1)),
            revision: Some(Box::new(RunRevisionChange {
                previous_version: samples::version(),
                previous_revision: 1,
                revision: 2,
            })),
        },
        EventKind::ChildStarted {
            child: samples::run_id(),
        },
        EventKind::ChildCompleted {
            child: samples::run_id(),
            outcome: samples::outcome(),
        },
    ]
}

fn end_events() -> Vec<EventKind> {
    let terminal = Target::BuiltIn(BuiltInTerminal::Failed);
    let detail = || "why".to_owned();
    vec![
        EventKind::WorkflowCompleted { terminal },
        EventKind::WorkflowFailed {
            terminal,
            detail: Some(detail()),
        },
        EventKind::WorkflowCancelled {
            terminal,
            reason: Some(detail()),
        },
        EventKind::WorkflowTimedOut {
            terminal,
            detail: Some(detail()),
        },
        EventKind::RunQuarantined,
    ]
}
