//! Renders events of a run's history by the manual's names (W23).

use super::show::{definition_of, line, option, payload, shortened, step_name, target};
use super::world::World;
use flotilla_engine::definition::{Definition, StepKind};
use flotilla_engine::ids::{Namespace, OutcomeName, RunId, RunNumber};
use flotilla_engine::rows::{
    Event, EventKind, History, HistoryRecord, PayloadRef, RunRecord, ScopeId, ScopeStep,
};
use flotilla_engine::view::{EventView, HistoryRange};
use flotilla_engine::{NodeId, view};

/// The events of a run whose sequence numbers are wanted.
pub(super) fn events(
    world: &World,
    number: RunNumber,
    run: &RunRecord,
    wanted: std::ops::RangeInclusive<u64>,
) -> String {
    let definition = definition_of(world, run);
    let mut out = String::new();
    for ((owner, first), record) in world.rows::<History>() {
        if owner != number {
            continue;
        }
        for (sequence, event) in (first..).zip(&record.events) {
            if wanted.contains(&sequence) {
                let words = event_in_words(world, &definition, event);
                line(&mut out, format!("  {sequence} {words}"));
            }
        }
    }
    out
}

/// The whole history of a run as callers read it.
pub(super) fn published(world: &World, namespace: &Namespace, id: &str) -> Vec<String> {
    let id = RunId::new(id).expect("a run id");
    let whole = HistoryRange {
        after_seq: 0,
        limit: usize::MAX,
    };
    let page = view::history(&world.store, namespace, &id, whole).expect("memory");
    let events = page.expect("the run exists").events.into_iter();
    events.map(event_as_published).collect()
}

pub(super) fn event_as_published(event: EventView) -> String {
    let mut step = event.step.unwrap_or_default();
    if !event.scope.is_empty() {
        step = format!("[{}] {step}", event.scope);
    }
    if event.visit > 1 {
        step = format!("{step}#{}", event.visit);
    }
    let words = [
        event.type_name,
        step.trim_end(),
        "|",
        &event.detail,
        &event.attributes,
    ];
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    format!("  {} {}", event.seq, words.join(" "))
}

/// `[fan/stock 2]`: the path and the number of a scope below the run.
fn scope_in_words(definition: &Definition, scope: &ScopeId) -> String {
    let step = |step: &ScopeStep| {
        let branch = definition.branches(step.step).get(step.position as usize);
        let branch = match definition.step(step.step).kind {
            StepKind::ForEach(_) => format!("[{}]", step.position),
            // It opens only one scope.
            StepKind::Block(_) => String::new(),
            _ => branch.map_or("/?".to_owned(), |branch| format!("/{}", branch.name)),
        };
        let visit = match step.visit {
            1 => String::new(),
            visit => format!("#{visit}"),
        };
        format!("{}{visit}{branch}", step_name(definition, step.step))
    };
    let path: Vec<String> = scope.path.0.iter().map(step).collect();
    if path.is_empty() {
        return String::new();
    }
    format!("[{} {}]", path.join("/"), scope.number.0)
}

fn event_in_words(world: &World, definition: &Definition, event: &Event) -> String {
    let mut step = event
        .step
        .map_or_else(String::new, |step| step_name(definition, step));
    if event.visit > 1 {
        step = format!("{step}#{}", event.visit);
    }
    let scope = scope_in_words(definition, &event.scope);
    let (name, detail) = kind_in_words(world, definition, &event.kind);
    let words = [name.to_owned(), scope, step, detail];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    words
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

/// An event about how a step fares.
fn about_step(kind: &EventKind) -> (&'static str, String) {
    let due = |what, number: &u32, due_ms: &u64| format!("{what} {number} at {due_ms}");
    match kind {
        EventKind::RunBegan => ("run_began", String::new()),
        EventKind::ConcurrencyWaiting { key, position } => {
            ("concurrency_waiting", format!("{key} at {position}"))
        }
        EventKind::Info { number } => ("info", number.to_string()),
        EventKind::PhaseChanged { phase } => ("phase_changed", phase.name().to_owned()),
        EventKind::CompensationStarted => ("compensation_started", String::new()),
        EventKind::CompensationCompleted => ("compensation_completed", String::new()),
        EventKind::CompensationFailed { code } => ("compensation_failed", code.clone()),
        EventKind::HandlerFailed { code } => ("handler_failed", code.clone()),
        EventKind::StepDelayed { due_ms } => ("step_delayed", format!("until {due_ms}")),
        EventKind::WaitingForSignal {
            signal_type,
            deadline_at_ms,
        } => (
            "waiting_for_signal",
            format!("{signal_type}{}", option(" until ", deadline_at_ms)),
        ),
        EventKind::AwaitingReport {
            action_run,
            deadline_at_ms,
        } => (
            "awaiting_report",
            format!("{action_run}{}", option(" until ", deadline_at_ms)),
        ),
        EventKind::RetryScheduled { attempt, due_ms } => {
            ("retry_scheduled", due("attempt", attempt, due_ms))
        }
        EventKind::PollScheduled { poll, due_ms } => ("poll_scheduled", due("poll", poll, due_ms)),
        EventKind::PollExhausted { polls } => ("poll_exhausted", format!("after {polls}")),
        EventKind::StepTimeout { timeout } => ("step_timeout", timeout.code().to_owned()),
        EventKind::FallbackStarted { code } => ("fallback_started", code.clone()),
        EventKind::StepRetry { attempt } => ("step_retry", format!("attempt {attempt}")),
        EventKind::LoopWarning { visits } => ("loop_warning", format!("visits {visits}")),
        other => panic!("expected an event about a step, but found {other:?}"),
    }
}

/// An event about the state.
fn about_state(world: &World, kind: &EventKind) -> (&'static str, String) {
    match kind {
        EventKind::StateChanged {
            writes, is_patch, ..
        } => {
            let by = if *is_patch { "patch " } else { "" };
            ("state_changed", format!("{by}{}", payload(world, *writes)))
        }
        EventKind::StateJoined {
            writes, removed, ..
        } => {
            let removed = removed.iter().map(|key| format!(" without {key}"));
            let removed: String = removed.collect();
            ("state_joined", payload(world, *writes) + &removed)
        }
        EventKind::StateRecorded { state } => ("state_recorded", payload(world, *state)),
        other => panic!("expected an event about the state, but found {other:?}"),
    }
}

/// The outcome of a step, with its output.
fn end_of_step(world: &World, outcome: &OutcomeName, output: Option<PayloadRef>) -> String {
    let output = output.map(|output| payload(world, output));
    format!("{outcome}{}", option(" output=", &output))
}

fn kind_in_words(
    world: &World,
    definition: &Definition,
    kind: &EventKind,
) -> (&'static str, String) {
    let content = |reference: &PayloadRef| payload(world, *reference);
    match kind {
        EventKind::WorkflowStarted { input, parent } => {
            let (input, parent) = (content(input), option(" parent=", parent));
            ("workflow_started", format!("input={input}{parent}"))
        }
        EventKind::StepCompleted { outcome, output } => {
            ("step_completed", end_of_step(world, outcome, *output))
        }
        EventKind::StepTakenOver(result) => (
            "step_taken_over",
            end_of_step(world, &result.outcome, result.output),
        ),
        EventKind::ConcurrencyWaiting { .. }
        | EventKind::RunBegan
        | EventKind::Info { .. }
        | EventKind::StepDelayed { .. }
        | EventKind::PhaseChanged { .. }
        | EventKind::HandlerFailed { .. }
        | EventKind::CompensationStarted
        | EventKind::CompensationCompleted
        | EventKind::CompensationFailed { .. }
        | EventKind::AwaitingReport { .. }
        | EventKind::WaitingForSignal { .. }
        | EventKind::StepRetry { .. }
        | EventKind::RetryScheduled { .. }
        | EventKind::PollScheduled { .. }
        | EventKind::PollExhausted { .. }
        | EventKind::StepTimeout { .. }
        | EventKind::LoopWarning { .. }
        | EventKind::FallbackStarted { .. } => about_step(kind),
        EventKind::SignalReceived { payload, .. } => received(kind, &content(payload)),
        EventKind::SignalMatched { signal_type } => ("signal_matched", signal_type.to_string()),
        EventKind::SignalTimeout { target: to } => ("signal_timeout", target(definition, *to)),
        EventKind::ActionNotFound { .. }
        | EventKind::ActionDisabled { .. }
        | EventKind::ChildRefused { .. }
        | EventKind::AwaitingAction { .. }
        | EventKind::ActionStarted { .. }
        | EventKind::ActionRetryScheduled { .. }
        | EventKind::ActionCompleted { .. }
        | EventKind::ChildStarted { .. }
        | EventKind::RunRetried { .. }
        | EventKind::ChildCompleted { .. } => target_in_words(kind),
        EventKind::RunResumed { .. }
        | EventKind::WorkflowCompleted { .. }
        | EventKind::WorkflowFailed { .. }
        | EventKind::WorkflowCancelled { .. }
        | EventKind::WorkflowTimedOut { .. }
        | EventKind::RunQuarantined
        | EventKind::RunReleased => end_in_words(definition, kind),
        EventKind::StateChanged { .. }
        | EventKind::StateJoined { .. }
        | EventKind::StateRecorded { .. } => about_state(world, kind),
        EventKind::StepStarted
        | EventKind::StepCancelled
        | EventKind::Plan(_)
        | EventKind::RecordEmitted { .. }
        | EventKind::WaitStarted { .. }
        | EventKind::ApprovalOpened { .. }
        | EventKind::ApprovalDecided { .. }
        | EventKind::SwitchTaken { .. } => as_published(definition, kind),
        EventKind::ScopeStarted
        | EventKind::ScopeEnded { .. }
        | EventKind::IterationEnded { .. }
        | EventKind::BranchJoined { .. } => about_scope(kind),
        EventKind::ScheduleStarted { .. } | EventKind::TriggerStarted { .. } => {
            start_in_words(kind)
        }
    }
}

/// A signal that has arrived.
fn received(kind: &EventKind, payload: &str) -> (&'static str, String) {
    let EventKind::SignalReceived {
        signal_type, id, ..
    } = kind
    else {
        panic!("{kind:?} is about something else");
    };
    let id = option(" id=", id);
    ("signal_received", format!("{signal_type}{id} {payload}"))
}

/// An event about a scope.
fn about_scope(kind: &EventKind) -> (&'static str, String) {
    match kind {
        EventKind::ScopeStarted => ("scope_started", String::new()),
        EventKind::ScopeEnded { outcome } => ("scope_ended", outcome.to_string()),
        EventKind::IterationEnded { index, outcome } => at("iteration_ended", *index, outcome),
        EventKind::BranchJoined { position, outcome } => at("branch_joined", *position, outcome),
        other => panic!("{other:?} is about something else"),
    }
}

/// The end of one of several scopes of a step.
fn at(name: &'static str, position: u32, outcome: &OutcomeName) -> (&'static str, String) {
    (name, format!("{position} {outcome}"))
}

/// What started a run without a caller.
fn start_in_words(kind: &EventKind) -> (&'static str, String) {
    match kind {
        EventKind::ScheduleStarted { firing_ms } => {
            ("schedule_started", format!("firing of {firing_ms}"))
        }
        EventKind::TriggerStarted {
            partition, records, ..
        } => {
            let ids: Vec<String> = records.iter().map(ToString::to_string).collect();
            let ids = ids.join(" ");
            ("trigger_started", format!("partition {partition} {ids}"))
        }
        other => panic!("expected the start of a run, but found {other:?}"),
    }
}

/// As callers see it.
fn as_published(definition: &Definition, kind: &EventKind) -> (&'static str, String) {
    let event = Event {
        scope: ScopeId::default(),
        step: None,
        visit: 0,
        activation: None,
        kind: kind.clone(),
    };
    let record = HistoryRecord {
        at_ms: 0,
        raft_index: 0,
        term: 0,
        node: NodeId(1),
        payloads_count: 3,
        events: Vec::new(),
    };
    let view = view::describe(definition, &event, 1, &record);
    let words = [view.detail, view.attributes];
    (view.type_name, words.join(" ").trim_end().to_owned())
}

fn words(detail: &Option<String>) -> String {
    option(": ", &detail.as_deref().map(shortened))
}

fn target_in_words(kind: &EventKind) -> (&'static str, String) {
    match kind {
        EventKind::ActionNotFound { action } => ("action_not_found", action.to_string()),
        EventKind::ActionDisabled { action } => ("action_disabled", action.to_string()),
        EventKind::ChildRefused { detail } => ("child_refused", detail.clone()),
        EventKind::AwaitingAction { action, action_run } => {
            ("awaiting_action", format!("{action} {action_run}"))
        }
        EventKind::ActionStarted {
            action_run,
            worker,
            attempt,
        } => (
            "action_started",
            format!("{action_run} attempt {attempt} on {worker}"),
        ),
        EventKind::ActionRetryScheduled {
            action_run,
            attempt,
            due_ms,
            message,
        } => (
            "action_retry_scheduled",
            format!("{action_run} attempt {attempt} at {due_ms}: {message}"),
        ),
        EventKind::ActionCompleted {
            action_run,
            outcome,
            error,
        } => {
            let error = error
                .as_ref()
                .map(|error| format!("{}: {}", error.code, shortened(&error.message)));
            let error = option(" ", &error);
            ("action_completed", format!("{action_run} {outcome}{error}"))
        }
        EventKind::ChildStarted { child } => ("child_started", child.to_string()),
        EventKind::RunRetried { next } => ("run_retried", next.to_string()),
        EventKind::ChildCompleted { child, outcome } => {
            ("child_completed", format!("{child} {outcome}"))
        }
        other => panic!("{other:?} is about no target"),
    }
}

fn end_in_words(definition: &Definition, kind: &EventKind) -> (&'static str, String) {
    match kind {
        EventKind::RunResumed { from, revision } => {
            let step = from
                .map(|step| step_name(definition, step))
                .unwrap_or_default();
            let revision = revision.as_ref().map(|change| {
                let (version, revision) = (&definition.version, change.revision);
                let (former, of) = (change.previous_revision, &change.previous_version);
                format!(" with {version} revision {revision} instead of {of} revision {former}")
            });
            (
                "run_resumed",
                format!("{step}{}", revision.unwrap_or_default()),
            )
        }
        EventKind::WorkflowCompleted { terminal } => {
            ("workflow_completed", target(definition, *terminal))
        }
        EventKind::WorkflowFailed { terminal, detail } => (
            "workflow_failed",
            format!("{}{}", target(definition, *terminal), words(detail)),
        ),
        EventKind::WorkflowCancelled { terminal, reason } => (
            "workflow_cancelled",
            format!("{}{}", target(definition, *terminal), option(": ", reason)),
        ),
        EventKind::WorkflowTimedOut { terminal, detail } => (
            "workflow_timed_out",
            format!("{}{}", target(definition, *terminal), words(detail)),
        ),
        EventKind::RunQuarantined => ("run_quarantined", String::new()),
        EventKind::RunReleased => ("run_released", String::new()),
        other => panic!("{other:?} ends no run"),
    }
}
