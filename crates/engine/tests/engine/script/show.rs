//! What scripts show: replies, events, effects and records in words.

use super::line::Line;
use super::world::World;
use flotilla_engine::definition::{Definition, StepIndex, Target};
use flotilla_engine::ids::{
    ActionName, ActionRunNumber, Namespace, RunNumber, WorkerId, WorkflowName,
};
use flotilla_engine::tables::{
    ActionRuns, Actions, Activation, ActivationState, AttributeValue, Cluster, Definitions, Event,
    EventKind, History, PayloadRef, Payloads, Quarantine, Ready, Requests, RunRecord, Runs,
    TimerKey, WorkerActivities, Workers, Workflows,
};
use flotilla_engine::{Effect, Rejection, Reply};
use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

/// One line for each reply.
pub(super) fn replies(replies: &[Result<Reply, Rejection>]) -> String {
    let mut out = String::new();
    for reply in replies {
        match reply {
            Ok(reply) => line(&mut out, reply_in_words(reply)),
            Err(rejection) => line(
                &mut out,
                format!("rejected {}: {rejection}", rejection.code()),
            ),
        }
    }
    out
}

fn reply_in_words(reply: &Reply) -> String {
    let or = |is_so: bool, yes: &str, no: &str| if is_so { yes } else { no }.to_owned();
    match reply {
        Reply::Done => "done".to_owned(),
        Reply::DefinitionCreated {
            revision,
            is_new,
            is_latest,
        } => {
            let new = or(*is_new, "new", "known");
            let latest = or(*is_latest, ", latest", "");
            format!("revision {revision}, {new}{latest}")
        }
        Reply::RunStarted {
            run_id,
            workflow,
            version,
            revision,
            is_existing,
        } => {
            let verb = or(*is_existing, "existing", "started");
            format!("{verb} {run_id} of {workflow} {version} revision {revision}")
        }
        Reply::SignalAccepted { is_repeated } => {
            or(*is_repeated, "signal repeated", "signal accepted")
        }
        Reply::ActionRegistered {
            version,
            is_changed,
        } => format!(
            "version {version}, {}",
            or(*is_changed, "changed", "unchanged")
        ),
        Reply::ActionInvoked {
            action_run,
            is_existing,
        } => format!("{} {action_run}", or(*is_existing, "existing", "invoked")),
        Reply::LeaseExtended { expires_at_ms } => format!("lease until {expires_at_ms}"),
        Reply::TasksAssigned { count } => format!("assigned {count}"),
        Reply::WorkerHeard { is_draining } => or(*is_draining, "heard, drain", "heard"),
    }
}

/// An effect; timers and changed runs show in other ways.
pub(super) fn effect(effect: &Effect) -> String {
    let text = match effect {
        Effect::WakeWorkers { action, .. } => format!("wake {action}"),
        Effect::DeliverTask {
            worker,
            poll,
            assignment,
        } => format!(
            "deliver {} attempt {} to {worker} poll {poll} until {}",
            assignment.token.action_run, assignment.token.attempt, assignment.lease_expires_at_ms
        ),
        Effect::RevokeTask { worker, token, .. } => format!(
            "revoke {} attempt {} from {worker}",
            token.action_run, token.attempt
        ),
        Effect::DrainWorker { worker, .. } => format!("drain {worker}"),
        Effect::ArmTimer { due_ms } => format!("timer at {due_ms}"),
        Effect::CheckChildInput { parent, activation } => {
            format!("check input of run {} activation {activation}", parent.0)
        }
        Effect::RunChanged { .. } | Effect::ModulesChanged => return String::new(),
        Effect::ActionRunEnded { action_run } => format!("ended {action_run}"),
    };
    format!("> {text}\n")
}

/// A run's state and its events from `first` on.
pub(super) fn progress(world: &World, number: RunNumber, run: &RunRecord, first: u64) -> String {
    let mut out = String::new();
    line(&mut out, format!("{} {}", run.id, state(world, run)));
    out + &events(world, number, run, first..=u64::MAX)
}

fn state(world: &World, run: &RunRecord) -> String {
    let mut text = run.status.name().to_owned();
    let definition = definition_of(world, run);
    if let Some(end) = &run.end {
        add(
            &mut text,
            format!("at {}", target(&definition, end.terminal)),
        );
    }
    for active in &run.active {
        add(&mut text, format!("for {}", waiting_for(active)));
    }
    if let Some(detail) = &run.detail {
        add(&mut text, format!("({detail})"));
    }
    if let Some(output) = run.output {
        add(&mut text, format!("output={}", payload(world, output)));
    }
    text
}

fn waiting_for(active: &Activation) -> String {
    match &active.state {
        ActivationState::Executing => "nothing".to_owned(),
        ActivationState::Action(action_run) => format!("action {action_run}"),
        ActivationState::Signal { deadline_ms } => match deadline_ms {
            Some(deadline_ms) => format!("signal until {deadline_ms}"),
            None => "signal".to_owned(),
        },
        ActivationState::Child(child) => format!("child wfrun-{}", child.0),
        ActivationState::ChildInput { definition } => {
            format!("report on definition {}", definition.0)
        }
        ActivationState::Retry { due_ms } => format!("retry at {due_ms}"),
        ActivationState::Poll { due_ms } => format!("poll at {due_ms}"),
    }
}

fn events(
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

fn event_in_words(world: &World, definition: &Definition, event: &Event) -> String {
    let step = event
        .step
        .map_or_else(String::new, |step| step_name(definition, step));
    let (name, detail) = kind_in_words(world, definition, &event.kind);
    let words = [name.to_owned(), step, detail];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    words
        .into_iter()
        .filter(|word| !word.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

fn kind_in_words(
    world: &World,
    definition: &Definition,
    kind: &EventKind,
) -> (&'static str, String) {
    let content = |reference: &PayloadRef| payload(world, *reference);
    match kind {
        EventKind::WorkflowStarted { input, parent } => (
            "workflow_started",
            format!("input={}{}", content(input), option(" parent=", parent)),
        ),
        EventKind::StepStarted => ("step_started", String::new()),
        EventKind::StepCompleted { outcome, output } => (
            "step_completed",
            format!(
                "{outcome}{}",
                option(" output=", &output.as_ref().map(content))
            ),
        ),
        EventKind::StepRetry { attempt } => ("step_retry", format!("attempt {attempt}")),
        EventKind::RetryScheduled { attempt, due_ms } => {
            ("retry_scheduled", format!("attempt {attempt} at {due_ms}"))
        }
        EventKind::PollScheduled { poll, due_ms } => {
            ("poll_scheduled", format!("poll {poll} at {due_ms}"))
        }
        EventKind::PollExhausted { polls } => ("poll_exhausted", format!("after {polls}")),
        EventKind::WaitingForSignal {
            signal_type,
            deadline_ms,
        } => (
            "waiting_for_signal",
            format!("{signal_type}{}", option(" until ", deadline_ms)),
        ),
        EventKind::SignalReceived {
            signal_type,
            id,
            payload,
        } => (
            "signal_received",
            format!("{signal_type}{} {}", option(" id=", id), content(payload)),
        ),
        EventKind::SignalMatched { signal_type } => ("signal_matched", signal_type.to_string()),
        EventKind::SignalTimeout { target: to } => ("signal_timeout", target(definition, *to)),
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
        } => ("action_completed", format!("{action_run} {outcome}")),
        EventKind::ChildStarted { child } => ("child_started", child.to_string()),
        EventKind::ChildCompleted { child, outcome } => {
            ("child_completed", format!("{child} {outcome}"))
        }
        EventKind::WorkflowCompleted { .. }
        | EventKind::WorkflowFailed { .. }
        | EventKind::WorkflowCancelled { .. }
        | EventKind::WorkflowTimedOut { .. }
        | EventKind::RunQuarantined { .. } => end_in_words(definition, kind),
    }
}

fn end_in_words(definition: &Definition, kind: &EventKind) -> (&'static str, String) {
    match kind {
        EventKind::WorkflowCompleted { terminal } => {
            ("workflow_completed", target(definition, *terminal))
        }
        EventKind::WorkflowFailed { terminal, detail } => (
            "workflow_failed",
            format!("{}{}", target(definition, *terminal), option(": ", detail)),
        ),
        EventKind::WorkflowCancelled { terminal, reason } => (
            "workflow_cancelled",
            format!("{}{}", target(definition, *terminal), option(": ", reason)),
        ),
        EventKind::WorkflowTimedOut { terminal } => {
            ("workflow_timed_out", target(definition, *terminal))
        }
        EventKind::RunQuarantined { detail } => ("run_quarantined", detail.clone()),
        other => panic!("{other:?} ends no run"),
    }
}

/// The answer to a question; `None` for any other line.
pub(super) fn answer(world: &World, text: &str) -> Option<String> {
    let mut line = Line::parse(text);
    let answer = match line.word().as_str() {
        "show" => show(world, &mut line),
        "timers" => listed(world.timers().iter().map(timer_in_words)),
        "ready" => listed(world.rows::<Ready>().iter().map(|(key, _)| {
            let (_, action, inverted_priority, number) = key;
            format!("{action} {number} priority {}", u8::MAX - inverted_priority)
        })),
        "quarantine" => listed(
            world
                .rows::<Quarantine>()
                .iter()
                .map(|((kind, number), record)| format!("{kind:?} {number}: {}", record.detail)),
        ),
        "workers" => listed(
            world
                .rows::<WorkerActivities>()
                .iter()
                .map(|((_, id), activity)| format!("{id} {}", activity.status())),
        ),
        "history" => {
            let number = world.run_number(&line.word());
            let run = world.read::<Runs>(&number).expect("the run exists");
            let wanted = line.next_number()..=line.next_number();
            events(world, number, &run, wanted)
        }
        _ => return None,
    };
    line.end();
    Some(answer)
}

fn show(world: &World, line: &mut Line) -> String {
    let namespace = Namespace::default_namespace();
    match line.word().as_str() {
        "cluster" => {
            let cluster = world.read::<Cluster>(&()).unwrap_or_default();
            let remembered = world.rows::<Requests>().len();
            format!(
                "now {} grace until {} panics {} requests {} ({remembered} kept)\n",
                cluster.now_ms,
                cluster.grace_until_ms,
                cluster.panics_count,
                cluster.requests_count
            )
        }
        "workflow" => {
            let name = WorkflowName::new(line.word()).expect("a workflow name");
            show_workflow(world, (namespace, name))
        }
        "action" => {
            let name = ActionName::new(line.word()).expect("an action name");
            show_action(world, &(namespace, name))
        }
        "worker" => {
            let id = WorkerId::new(line.word()).expect("a worker id");
            show_worker(world, &(namespace, id))
        }
        id => match ActionRunNumber::from_id(id) {
            Some(number) => show_action_run(world, number),
            None => show_run(world, world.run_number(id)),
        },
    }
}

fn show_workflow(world: &World, key: (Namespace, WorkflowName)) -> String {
    let Some(workflow) = world.read::<Workflows>(&key) else {
        return "none\n".to_owned();
    };
    let latest = world
        .read::<Definitions>(&workflow.latest)
        .expect("a workflow has a latest");
    let enabled = if workflow.is_enabled {
        "enabled"
    } else {
        "disabled"
    };
    let version = &latest.definition.version;
    format!("{enabled}, latest {version} revision {}\n", latest.revision)
}

fn show_action(world: &World, key: &(Namespace, ActionName)) -> String {
    let Some(action) = world.read::<Actions>(key) else {
        return "none\n".to_owned();
    };
    format!(
        "version {} {} timeout {} retries {} delay {}{} created {} updated {}\n",
        action.version,
        if action.is_enabled {
            "enabled"
        } else {
            "disabled"
        },
        action.timeout_ms,
        action.max_retries,
        action.retry_delay_ms,
        option(" description=", &action.description),
        action.created_at_ms,
        action.updated_at_ms
    )
}

fn show_worker(world: &World, key: &(Namespace, WorkerId)) -> String {
    let (Some(worker), Some(activity)) = (
        world.read::<Workers>(key),
        world.read::<WorkerActivities>(key),
    ) else {
        return "none\n".to_owned();
    };
    let mut out = String::new();
    line(
        &mut out,
        format!(
            "{} load {} heard {} registered {} incarnation {} concurrency {} labels {:?}",
            activity.status(),
            activity.load,
            activity.heard_at_ms,
            worker.registered_at_ms,
            worker.incarnation,
            worker.max_concurrency,
            worker.labels
        ),
    );
    let leases: Vec<String> = activity.leases.iter().map(ToString::to_string).collect();
    line(
        &mut out,
        format!(
            "completed {} failed {} holds [{}]",
            activity.tasks_completed,
            activity.tasks_failed,
            leases.join(" ")
        ),
    );
    let listed: Vec<&str> = worker
        .processes
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    line(&mut out, format!("runs [{}]", listed.join(" ")));
    for (name, process) in &activity.processes {
        let (ran, failed) = (process.run_count, process.fail_count);
        let last = option(" last ", &process.last_run_at_ms);
        line(
            &mut out,
            format!("  {name} ran {ran} failed {failed}{last}"),
        );
    }
    out
}

fn show_action_run(world: &World, number: ActionRunNumber) -> String {
    let Some(record) = world.read::<ActionRuns>(&number) else {
        return "none\n".to_owned();
    };
    let lease = record.lease.as_ref();
    let held = lease.map(|lease| format!("{} until {}", lease.worker, lease.expires_at_ms));
    let error = record
        .error
        .as_ref()
        .map(|error| format!("{}: {}", error.code, error.message));
    format!(
        "{} attempt {} of {} priority {}{}{}{}{}\n",
        record.status.name(),
        record.attempt,
        record.attempts_max,
        record.priority,
        option(" held by ", &held),
        option(" outcome ", &record.outcome),
        option(
            " output=",
            &record.output.map(|output| payload(world, output))
        ),
        option(" error ", &error)
    )
}

fn show_run(world: &World, number: RunNumber) -> String {
    let run = world.read::<Runs>(&number).expect("the run exists");
    let record = world
        .read::<Definitions>(&run.definition)
        .expect("a run is pinned");
    let definition = &record.definition;
    let mut out = String::new();
    line(
        &mut out,
        format!(
            "{} of {} {} revision {}: {}",
            run.id,
            definition.name,
            definition.version,
            record.revision,
            state(world, &run)
        ),
    );
    line(
        &mut out,
        format!(
            "started {}{}",
            run.started_at_ms,
            option(" completed ", &run.completed_at_ms)
        ),
    );
    for (position, value) in &run.attributes {
        let name = &definition.search_attributes[usize::from(*position)].name;
        line(&mut out, format!("  attribute {name} {}", attribute(value)));
    }
    let results: BTreeMap<u32, _> = run
        .results
        .iter()
        .map(|(step, result)| (result.order, (step, result)))
        .collect();
    for (step, result) in results.values() {
        let name = step_name(definition, **step);
        let output = option(
            " output=",
            &result.output.map(|output| payload(world, output)),
        );
        let (outcome, attempts) = (&result.outcome, result.attempts);
        let (from, to) = (result.started_at_ms, result.completed_at_ms);
        line(
            &mut out,
            format!("  {name} {outcome} attempts {attempts} {from}..{to}{output}"),
        );
    }
    out
}

fn attribute(value: &AttributeValue) -> String {
    match value {
        AttributeValue::String(text) => format!("string {text:?}"),
        AttributeValue::Number(number) => format!("number {}", number.as_str()),
        AttributeValue::Timestamp(timestamp) => format!("timestamp {timestamp}"),
    }
}

fn timer_in_words(timer: &TimerKey) -> String {
    let TimerKey {
        kind,
        due_ms,
        subject,
        detail,
    } = timer;
    format!("{kind:?} of {subject}.{detail} at {due_ms}")
}

fn target(definition: &Definition, target: Target) -> String {
    match target {
        Target::Step(step) => step_name(definition, step),
        Target::BuiltIn(terminal) => terminal.name().to_owned(),
        Target::Custom(index) => definition.terminal(index).name.to_string(),
    }
}

/// The name of a step; of a damaged run, its number.
fn step_name(definition: &Definition, step: StepIndex) -> String {
    let found = definition.steps.get(step.position());
    found.map_or_else(|| format!("step {}", step.0), |step| step.name.to_string())
}

fn definition_of(world: &World, run: &RunRecord) -> Definition {
    world
        .read::<Definitions>(&run.definition)
        .expect("a run is pinned to a definition that is kept")
        .definition
}

/// A payload's text, short.
fn payload(world: &World, reference: PayloadRef) -> String {
    let json = world
        .read::<Payloads>(&reference)
        .expect("payloads are kept");
    json.as_str().to_owned()
}

fn option<T: Display>(label: &str, value: &Option<T>) -> String {
    value
        .as_ref()
        .map_or_else(String::new, |value| format!("{label}{value}"))
}

fn add(text: &mut String, more: String) {
    write!(text, " {more}").expect("a String takes every byte");
}

fn line(out: &mut String, text: String) {
    writeln!(out, "{text}").expect("a String takes every byte");
}

fn listed(lines: impl Iterator<Item = String>) -> String {
    let text: String = lines.map(|line| line + "\n").collect();
    if text.is_empty() {
        "none\n".to_owned()
    } else {
        text
    }
}
