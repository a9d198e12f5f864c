//! Questions: render the current state of the tables.

use super::access;
use super::dead_letter;
use super::event::{events, published};
use super::group;
use super::kv;
use super::line::Line;
use super::plan_question;
use super::query;
use super::quota;
use super::report;
use super::schedule;
use super::show::{line, option, payload, state, step_name};
use super::stream;
use super::trace;
use super::trigger;
use super::world::World;
use crate::invariants;
use flotilla_engine::ids::{
    ActionName, ActionRunNumber, Namespace, RunId, RunNumber, ScopeNumber, WorkerId, WorkflowName,
};
use flotilla_engine::rows::{
    ActionRunKeys, ActionRuns, ActionRunsByRun, Actions, AttributeValue, Cluster,
    CompensationProgress, Definitions, History, IdempotencyKeys, Infos, Payloads, PayloadsHeld,
    Process, Ready, Requests, RunNames, RunRemains, Runs, SignalIds, StepResults, TimerKey,
    TriggeredBy, WorkerActivities, WorkerProcesses, Workers, Workflows,
};
use flotilla_engine::view::{self, InfoRange};

const QUESTIONS: [&str; 16] = [
    "show",
    "timers",
    "ready",
    "quarantine",
    "workers",
    "history",
    "published",
    "infos",
    "stamps",
    "kept",
    "due",
    "runs",
    "expired",
    "rows",
    "letters",
    "writes",
];

/// Whether a line asks for something, and changes nothing.
pub(super) fn is_question(text: &str) -> bool {
    let verb = text.split_whitespace().next();
    let mut all = QUESTIONS
        .iter()
        .chain(&access::QUESTIONS)
        .chain(&kv::QUESTIONS)
        .chain(&quota::QUESTIONS)
        .chain(&stream::QUESTIONS)
        .chain(&group::QUESTIONS)
        .chain(&report::QUESTIONS)
        .chain(&trace::QUESTIONS)
        .chain(&trigger::QUESTIONS);
    all.any(|question| verb == Some(question))
}

/// The answer to a question.
pub(super) fn answer(world: &World, text: &str) -> String {
    let mut line = Line::parse(text);
    let answer = match line.word().as_str() {
        "show" => show(world, &mut line),
        "timers" => listed(world.timers().iter().map(timer_in_words)),
        "ready" => listed(world.rows::<Ready>().iter().map(|(key, _)| {
            let (_, action, labels, inverted_priority, number) = key;
            let labels: Vec<String> = labels
                .0
                .iter()
                .map(|(name, value)| format!(" {name}={value}"))
                .collect();
            let priority = u8::MAX - inverted_priority;
            format!("{action} {number} priority {priority}{}", labels.concat())
        })),
        "quarantine" => quarantine(world),
        "workers" => listed(
            world
                .rows::<WorkerActivities>()
                .iter()
                .map(|((_, id), activity)| format!("{id} {}", activity.published_status())),
        ),
        "history" => {
            let number = world.run_number(&line.word());
            let run = world.read::<Runs>(&number).expect("the run exists");
            let wanted = line.next_number()..=line.next_number();
            events(world, number, &run, wanted)
        }
        "published" => {
            let id = line.word();
            listed(published(world, &line.namespace(), &id).into_iter())
        }
        "infos" => {
            let id = RunId::new(line.word()).expect("a run id");
            let range = InfoRange {
                after: line.number("after").unwrap_or(0),
                limit: line.number("limit").unwrap_or(1_000),
            };
            infos(world, &line.namespace(), &id, range)
        }
        "due" => listed(schedule::due(world).into_iter()),
        "runs" => query::answer(world, &mut line),
        "expired" => {
            let expired = view::expired(&world.store, world.now_ms()).expect("memory");
            let is_due = if expired.is_due { "due" } else { "nothing due" };
            format!("{is_due}{}\n", option(", first at ", &expired.next_due_ms))
        }
        "rows" => rows(world),
        "letters" => dead_letter::list(world, &mut line),
        "stamps" => stamps(world, world.run_number(&line.word())),
        "kept" => {
            let number = world.run_number(&line.word());
            let cursor = world.read::<Runs>(&number).expect("the run exists").history;
            let (from, to) = (cursor.trimming.after, cursor.trimming.until);
            format!(
                "{} events, trimmed after {from} until {to}\n",
                cursor.events_count
            )
        }
        "writes" => format!("{} writes\n", world.writes_count),
        verb => stream::answer(world, verb, &mut line)
            .or_else(|| group::answer(world, verb, &mut line))
            .or_else(|| access::answer(world, verb))
            .or_else(|| kv::answer(world, verb, &mut line))
            .or_else(|| report::answer(world, verb, &mut line))
            .or_else(|| trace::answer(world, verb, &mut line))
            .or_else(|| trigger::answer(world, verb, &mut line))
            .unwrap_or_else(|| panic!("expected a question, but found {verb}")),
    };
    line.end();
    answer
}

/// The quarantined items, in pages of two.
fn quarantine(world: &World) -> String {
    let (mut lines, mut after) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let range = view::PageRange {
            after: after.as_deref(),
            limit: 2,
        };
        let page = view::quarantined(&world.store, range).expect("memory");
        lines.extend(page.items.into_iter().map(|one| {
            let namespace = one
                .namespace
                .map_or_else(String::new, |name| format!(" in {name}"));
            let ((kind, _), record) = (one.subject, one.record);
            let (kind, name) = (kind.name(), one.name);
            format!(
                "{kind} {name}{namespace} at {} index {}",
                record.at_ms, record.raft_index
            )
        }));
        after = page.next;
        if after.is_none() {
            return listed(lines.into_iter());
        }
    }
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
                cluster.requests.count
            )
        }
        "settings" => {
            let settings = view::cluster_settings(&world.store).expect("memory does not fail");
            format!("max request ids {}\n", settings.requests_max)
        }
        "workflow" => {
            let name = WorkflowName::new(line.word()).expect("a workflow name");
            show_workflow(world, (namespace, name))
        }
        "revisions" => {
            let name = WorkflowName::new(line.word()).expect("a workflow name");
            show_revisions(world, &(namespace, name))
        }
        "schedule" => {
            let name = WorkflowName::new(line.word()).expect("a workflow name");
            schedule::show(world, &name)
        }
        "action" => {
            let name = ActionName::new(line.word()).expect("an action name");
            show_action(world, &(namespace, name))
        }
        "worker" => {
            let id = WorkerId::new(line.word()).expect("a worker id");
            show_worker(world, &(namespace, id))
        }
        "plan" => plan_question::show(world, line),
        "waiting" => plan_question::show_waiting(world, line),
        id => match ActionRunNumber::from_id(id) {
            Some(number) => show_action_run(world, number),
            None => show_run(world, world.run_number(id)),
        },
    }
}

fn show_revisions(world: &World, key: &(Namespace, WorkflowName)) -> String {
    let range = view::PageRange::first(100);
    let line = |view: view::WorkflowView| {
        let latest = if view.is_latest { ", latest" } else { "" };
        let (version, revision) = (
            &view.definition.definition.version,
            view.definition.revision,
        );
        format!("version {version} revision {revision}{latest}\n")
    };
    let page = view::revisions(&world.store, key, range, line);
    match page.expect("memory does not fail") {
        Some(page) => page.items.concat(),
        None => "no workflow\n".to_owned(),
    }
}

/// How many rows each table has that holds what is swept.
fn rows(world: &World) -> String {
    let counts = [
        ("runs", world.rows::<Runs>().len()),
        ("names", world.rows::<RunNames>().len()),
        ("keys", world.rows::<IdempotencyKeys>().len()),
        ("history", world.rows::<History>().len()),
        ("payloads", world.rows::<Payloads>().len()),
        ("payloads held", world.rows::<PayloadsHeld>().len()),
        ("signal ids", world.rows::<SignalIds>().len()),
        ("action runs", world.rows::<ActionRuns>().len()),
        ("by action", invariants::by_action(&world.store).len()),
        ("by run", world.rows::<ActionRunsByRun>().len()),
        ("action run keys", world.rows::<ActionRunKeys>().len()),
        ("infos", world.rows::<Infos>().len()),
        ("remains", world.rows::<RunRemains>().len()),
    ];
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    format!("[{}]\n", counts.join(", "))
}

/// Where each record of a run's history comes from.
fn stamps(world: &World, number: RunNumber) -> String {
    let rows = world.rows::<History>();
    let own = rows.iter().filter(|((owner, _), _)| *owner == number);
    listed(own.map(|((_, first), record)| {
        let (at_ms, index, node) = (record.at_ms, record.raft_index, record.node.0);
        let term = record.term;
        format!("  {first} at {at_ms} index {index} node {node} term {term}")
    }))
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
            activity.published_status(),
            activity.load,
            activity.last_heartbeat_at_ms,
            worker.registered_at_ms,
            worker.incarnation,
            worker.max_concurrency,
            worker.labels
        ),
    );
    let leases = invariants::leases(&world.store, &activity.number);
    let leases: Vec<String> = leases
        .iter()
        .map(|(_, place)| place.task.to_string())
        .collect();
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
    let counted = invariants::rows::<WorkerProcesses>(&world.store, key);
    let counted = counted
        .iter()
        .filter(|(_, process)| process.last_run_at_ms.is_some());
    for ((.., Process { name, .. }), process) in counted {
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
    let awaited = record.report.map(|report| {
        let until = option(" until ", &report.deadline_at_ms);
        format!(" report{until}")
    });
    let error = record
        .error
        .as_ref()
        .map(|error| format!("{}: {}", error.code, error.message));
    format!(
        "{} attempt {} of {} priority {}{}{}{}{}{}\n",
        record.status.name(),
        record.attempt,
        record.attempts_max,
        record.priority,
        option(" held by ", &held),
        awaited.unwrap_or_default(),
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
            state(world, number, &run)
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
    let compensations = run.compensations.shown_progress();
    if compensations != CompensationProgress::None {
        line(&mut out, format!("compensation {}", compensations.name()));
    }
    if let TriggeredBy::Retry { of, from } = &run.triggered_by {
        line(&mut out, format!("replaces {of}{}", option(" from ", from)));
    }
    for (position, value) in &run.attributes {
        let name = &definition.search_attributes[usize::from(*position)].name;
        line(&mut out, format!("  attribute {name} {}", attribute(value)));
    }
    let mut results = invariants::rows::<StepResults>(&world.store, &number);
    results.sort_by_key(|(_, result)| result.order);
    for ((_, scope, step), result) in &results {
        let mut name = step_name(definition, *step);
        if *scope != ScopeNumber::ROOT {
            name = format!("[{}] {name}", scope.0);
        }
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

pub(super) fn listed(lines: impl Iterator<Item = String>) -> String {
    let text: String = lines.map(|line| line + "\n").collect();
    if text.is_empty() {
        "none\n".to_owned()
    } else {
        text
    }
}

/// The info entries of a run, as callers see them.
fn infos(world: &World, namespace: &Namespace, id: &RunId, range: InfoRange) -> String {
    let page = view::infos(&world.store, namespace, id, range).expect("memory does not fail");
    let Some(page) = page else {
        return "no such run\n".to_owned();
    };
    let entry = |entry: &view::InfoView| {
        let by = entry.task.as_ref().map_or_else(String::new, |task| {
            let place = match task.scope.as_str() {
                "" => task.step.clone(),
                scope => format!("{scope}/{}", task.step),
            };
            format!(" {place} {} attempt {}", task.action_run, task.attempt)
        });
        let content = super::show::shortened(entry.content.as_str());
        format!("{} at {}{by} {content}\n", entry.number, entry.at_ms)
    };
    let mut out: String = page.entries.iter().map(entry).collect();
    if page.has_more {
        out += "and more\n";
    }
    out
}
