//! Renders the result of an entry: replies, runs and effects.

use super::access;
use super::dead_letter;
use super::event::events;
use super::kv;
use super::schedule;
use super::trigger;
use super::world::World;
use crate::invariants;
use flotilla_engine::definition::{Definition, StepIndex, Target, Tracking};
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{
    Activation, ActivationState, Activations, Definitions, PayloadRef, Payloads, PlanState,
    PlanWait, RunRecord,
};
use flotilla_engine::{Effect, Rejection, Reply, view};
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
        Reply::Done(_) => "done".to_owned(),
        Reply::DefinitionCreated(created) => {
            let new = or(created.is_new, "new", "known");
            let latest = or(created.is_latest, ", latest", "");
            format!("revision {}, {new}{latest}", created.revision)
        }
        Reply::RunStarted(run) => {
            let verb = match run.existing {
                None => "started",
                Some(flotilla_engine::reply::ExistingReason::IdempotencyKey) => "existing",
                Some(flotilla_engine::reply::ExistingReason::Concurrency) => "holder",
            };
            let (id, workflow, version) = (&run.run_id, &run.workflow, &run.version);
            let revision = run.revision;
            format!("{verb} {id} of {workflow} {version} revision {revision}")
        }
        Reply::SignalAccepted(signal) => {
            let accepted = or(signal.is_kept, "signal kept", "signal accepted");
            or(signal.is_repeated, "signal repeated", &accepted)
        }
        Reply::ApprovalDecided(decided) => {
            let (step, visit) = (&decided.step, decided.visit);
            let outcome = decided.outcome.as_ref().map(ToString::to_string);
            let outcome = outcome.unwrap_or_else(|| "open".to_owned());
            format!("decided {step}#{visit}: {outcome}")
        }
        Reply::ActionRegistered(action) => {
            let changed = or(action.is_changed, "changed", "unchanged");
            format!("version {}, {changed}", action.version)
        }
        Reply::ActionInvoked(invoked) => {
            let verb = or(invoked.is_existing, "existing", "invoked");
            format!("{verb} {}", invoked.action_run)
        }
        Reply::LeaseExtended(lease) => format!("lease until {}", lease.expires_at_ms),
        Reply::TasksAssigned(assigned) => {
            let left = or(assigned.is_fitting_left, ", more would fit", "");
            format!("assigned {}{left}", assigned.count)
        }
        Reply::DeadLettersRequeued(dead_letters) => {
            dead_letter::requeued(&dead_letters.action_runs, dead_letters.has_more)
        }
        Reply::DeadLettersPurged(dead_letters) => {
            dead_letter::purged(dead_letters.count, dead_letters.has_more)
        }
        Reply::ScheduleFired(fired) => schedule::fired(fired.run_id.as_ref()),
        Reply::HeartbeatRecorded(worker) => or(worker.is_draining, "heard, drain", "heard"),
        Reply::CacheInvalidated(cache) => {
            let more = or(cache.next.is_some(), ", more follow", "");
            format!("invalidated {}{more}", cache.plan_count)
        }
        Reply::QuotaSet(quota) => format!("quota, version {}", quota.version),
        Reply::KeySet(key) => format!("set, version {}", key.version),
        Reply::NamespaceCreated(created) => or(created.is_new, "new namespace", "known namespace"),
        Reply::StreamCreated(created) => or(created.is_new, "new stream", "known stream"),
        Reply::RecordsAppended(appended) => format!("appended from {}", appended.first),
        Reply::GroupCreated(created) => or(created.is_new, "new group", "known group"),
        Reply::GroupJoined(joined) => format!("joined, ack within {}", joined.ack_timeout_ms),
        Reply::RecordsTaken(taken) => format!("taken {}", taken.count),
        Reply::DeliveriesEnded(settled) => format!("settled {}", settled.count),
        Reply::InfoAdded(added) => format!("info {}", added.number),
        Reply::TriggerFired(fired) => trigger::fired(fired),
        Reply::Deleted(deleted) => or(deleted.is_found, "deleted", "nothing to delete"),
        Reply::NamespaceDeleted(deleted) => kv::deleted(deleted.is_found, deleted.has_more),
        Reply::WorkflowDeleted(deleted) => kv::deleted(deleted.is_found, deleted.has_more),
        other => access::reply(other).unwrap_or_else(|| of_step(other)),
    }
}

/// A reply about the end of a run or of its steps.
fn of_step(reply: &Reply) -> String {
    match reply {
        Reply::TaskAccepted(task) => {
            format!("accepted{}", option(" until ", &task.deadline_at_ms))
        }
        Reply::RunCancelled(run) => {
            let phase = run
                .phase
                .map(|phase| format!(", in phase {}", phase.name()));
            format!("done{}", phase.unwrap_or_default())
        }
        Reply::RunResumed(run) => {
            let queued = if run.is_queued { ", queued" } else { "" };
            format!("resumed{}{queued}", option(" at ", &run.step))
        }
        Reply::StepReported(step) => format!("reported {} visit {}", step.step, step.visit),
        other => panic!("{other:?} is about something else"),
    }
}

/// An effect; ended and changed runs show in other ways.
pub(super) fn effect(world: &World, effect: &Effect) -> String {
    let text = match effect {
        Effect::WakeWorkers { action, .. } => format!("wake {action}"),
        Effect::DeliverTask {
            worker,
            poll,
            assignment,
        } => format!(
            "deliver {} attempt {} to {worker} poll {poll} until {} input={}{}",
            assignment.token.action_run,
            assignment.token.attempt,
            assignment.lease_expires_at_ms,
            payload(world, assignment.input),
            tracking(assignment.tracking)
        ),
        Effect::RevokeTask {
            worker,
            token,
            is_answer_awaited,
            ..
        } => {
            let verb = if *is_answer_awaited {
                "cancel"
            } else {
                "revoke"
            };
            format!(
                "{verb} {} attempt {} from {worker}",
                token.action_run, token.attempt
            )
        }
        Effect::DrainWorker { worker, .. } => format!("drain {worker}"),
        Effect::ArmTimer { due_ms } => format!("timer at {due_ms}"),
        Effect::ArmSchedule { due_ms } => format!("schedule at {due_ms}"),
        Effect::ArmTrigger { due_ms } => format!("trigger at {due_ms}"),
        Effect::CheckSchema { run, activation } => {
            format!("check for run {} activation {activation}", run.0)
        }
        Effect::ArmRetention { .. }
        | Effect::RunChanged { .. }
        | Effect::ModulesChanged
        | Effect::AccessChanged => {
            return String::new();
        }
        Effect::ActionRunEnded { action_run } => format!("ended {action_run}"),
        Effect::StreamChanged { stream, .. } => format!("changed {stream}"),
        Effect::RecordsReady { stream, group, .. } => format!("ready {stream} {group}"),
        Effect::RecordsLost { stream, count, .. } => format!("lost {count} of {stream}"),
    };
    format!("> {text}\n")
}

const LONG_EVENTS: u64 = 40;

/// A run's state and its events from `first` on.
pub(super) fn progress(world: &World, number: RunNumber, run: &RunRecord, first: u64) -> String {
    let mut out = String::new();
    line(
        &mut out,
        format!("{} {}", run.id, state(world, number, run)),
    );
    let last = run.history.events_count;
    if last - first < LONG_EVENTS {
        return out + &events(world, number, run, first..=last);
    }
    // A turn of hundreds of events shows how it begins and how it ends.
    let begin = events(world, number, run, first..=first + 5);
    let end = events(world, number, run, last - 5..=last);
    format!("{out}{begin}  …\n{end}")
}

pub(super) fn state(world: &World, number: RunNumber, run: &RunRecord) -> String {
    let mut text = run.status.name().to_owned();
    let definition = definition_of(world, run);
    if let Some(end) = &run.end {
        add(
            &mut text,
            format!("at {}", target(&definition, end.terminal)),
        );
    }
    for (_, active) in invariants::rows::<Activations>(&world.store, &number) {
        let end_of = if active.is_stopping() {
            "the end of "
        } else {
            ""
        };
        add(&mut text, format!("for {end_of}{}", waiting_for(&active)));
    }
    if let Some(detail) = &run.detail {
        add(&mut text, format!("({})", shortened(detail)));
    }
    if let Some(output) = run.output {
        add(&mut text, format!("output={}", payload(world, output)));
    }
    text
}

fn tracking(tracking: Tracking) -> String {
    match tracking {
        Tracking::Sync => String::new(),
        Tracking::Async { timeout_ms: None } => " async".to_owned(),
        Tracking::Async {
            timeout_ms: Some(ms),
        } => format!(" async within {ms}"),
    }
}

fn waiting_for(active: &Activation) -> String {
    match &active.state {
        ActivationState::Executing => "nothing".to_owned(),
        ActivationState::Action(action_run) => format!("action {action_run}"),
        ActivationState::Signal(wait) => match wait.deadline_at_ms {
            Some(deadline_at_ms) => format!("signal until {deadline_at_ms}"),
            None => "signal".to_owned(),
        },
        ActivationState::Approval(approval) => {
            let until = approval
                .deadline_at_ms
                .map(|due_ms| format!(" until {due_ms}"));
            let count = approval.approvals_count;
            format!("a decision, {count} approved{}", until.unwrap_or_default())
        }
        ActivationState::Child(child) => format!("child wfrun-{}", child.0),
        ActivationState::ChildInput { definition } => {
            format!("report on definition {}", definition.0)
        }
        ActivationState::Timer { due_ms } => format!("time {due_ms}"),
        ActivationState::Delay { due_ms } => format!("its time {due_ms}"),
        ActivationState::OutputCheck(unchecked) => {
            format!("report on an output, {}", unchecked.outcome)
        }
        ActivationState::Retry { due_ms } => format!("retry at {due_ms}"),
        ActivationState::Poll { due_ms } => format!("poll at {due_ms}"),
        ActivationState::Plan(plan) => format!("plan's {}", waiting_for_plan(plan)),
        ActivationState::Iterations(iterations) => format!(
            "items from [{}], {} of {} ended",
            iterations.first_scope.0, iterations.ended_count, iterations.total_count
        ),
        ActivationState::Branches(branches) => {
            format!("branches from [{}]", branches.first_scope.0)
        }
    }
}

fn waiting_for_plan(plan: &PlanState) -> String {
    match plan.wait {
        PlanWait::Executing => "nothing".to_owned(),
        PlanWait::Action(action_run) => format!("action {action_run}"),
        PlanWait::Retry { due_ms } => format!("retry at {due_ms}"),
    }
}

pub(super) fn target(definition: &Definition, target: Target) -> String {
    match target {
        Target::Step(step) => step_name(definition, step),
        Target::BuiltIn(terminal) => terminal.name().to_owned(),
        Target::Custom(index) => definition.terminal(index).name.to_string(),
        Target::End(index) => format!("flo.End.{}", definition.ends[index.position()]),
    }
}

/// The name of a step; of a damaged run, its number.
pub(super) fn step_name(definition: &Definition, step: StepIndex) -> String {
    let found = definition.steps.get(step.position());
    found.map_or_else(|| format!("step {}", step.0), |step| step.name.to_string())
}

pub(super) fn definition_of(world: &World, run: &RunRecord) -> Definition {
    world
        .read::<Definitions>(&run.definition)
        .expect("a run is pinned to a definition that is kept")
        .definition
}

/// A payload's text.
pub(super) fn payload(world: &World, reference: PayloadRef) -> String {
    assert!(
        world.read::<Payloads>(&reference).is_some(),
        "payloads are kept"
    );
    let json = view::payload(&world.store, reference).expect("memory does not fail");
    shortened(json.as_str())
}

/// A text; of a huge one, its length.
pub(super) fn shortened(text: &str) -> String {
    match text.len() {
        1_001.. => format!("({} bytes)", text.len()),
        _ => text.to_owned(),
    }
}

/// Bytes as text; of many, their number.
pub(super) fn text(bytes: &[u8]) -> String {
    match bytes.len() {
        long if long > 1_000 => format!("({long} bytes)"),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Renders the fact that an item is quarantined.
pub(super) fn quarantined(is_quarantined: bool) -> &'static str {
    if is_quarantined { " quarantined" } else { "" }
}

pub(super) fn option<T: Display>(label: &str, value: &Option<T>) -> String {
    value
        .as_ref()
        .map_or_else(String::new, |value| format!("{label}{value}"))
}

fn add(text: &mut String, more: String) {
    write!(text, " {more}").expect("a String takes every byte");
}

pub(super) fn line(out: &mut String, text: String) {
    writeln!(out, "{text}").expect("a String takes every byte");
}
