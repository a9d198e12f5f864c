//! Renders reports of runs: their visits with their attempts, their open scopes and their error.

use super::line::Line;
use super::question::listed;
use super::world::World;
use flotilla_engine::ids::{RunId, ScopePathText, StepName};
use flotilla_engine::json::Json;
use flotilla_engine::view::{
    self, FoundOutput, FoundReport, PageRange, ReportPage, ReportedAttempt, ReportedStep, RunView,
    ScopeKind, ScopeStatus, ScopeView, StepResultSelector, UsageView,
};

pub(super) const QUESTIONS: [&str; 4] = ["visits", "scopes", "error", "output"];

/// The answer to a question about reports; `None` for any other.
pub(super) fn answer(world: &World, verb: &str, line: &mut Line) -> Option<String> {
    Some(match verb {
        "visits" => visits(world, line),
        "scopes" => match run(world, line).scopes {
            Some(root) => listed(scope(&root, 0).into_iter()),
            None => "no open scope\n".to_owned(),
        },
        "error" => match run(world, line).error {
            Some(error) => format!("{}\n", error.as_str()),
            None => "no error\n".to_owned(),
        },
        "output" => output(world, line),
        _ => return None,
    })
}

/// `output RUN STEP scope=PATH visit=N`: what the step has returned (W95).
fn output(world: &World, line: &mut Line) -> String {
    let run_id = RunId::new(line.word()).expect("a run id");
    let step = StepName::new(line.word()).expect("a step");
    let scope = line.option("scope");
    let selector = StepResultSelector {
        step,
        scope: scope.map(|scope| ScopePathText::new(scope).expect("the path of a scope")),
        visit: line.number("visit"),
    };
    let found = view::step_output(&world.store, &line.namespace(), &run_id, &selector);
    match found.expect("memory") {
        FoundOutput::Found(found) => {
            let output = found.output.as_ref().map_or("none", Json::as_str);
            format!("#{} {} output={output}\n", found.visit, found.outcome)
        }
        missing => format!("{missing:?}\n"),
    }
}

fn run(world: &World, line: &mut Line) -> RunView {
    let run_id = RunId::new(line.word()).expect("a run id");
    let found = view::run(&world.store, &line.namespace(), &run_id).expect("memory");
    found.expect("the run exists")
}

/// `visits RUN` shows all visits; `visits RUN page=2` in pages of two, and with `from=20 to=24` only these lines.
fn visits(world: &World, line: &mut Line) -> String {
    let run_id = RunId::new(line.word()).expect("a run id");
    let limit = line.number("page").unwrap_or(1_000);
    let from: usize = line.number("from").unwrap_or(1);
    let to = line
        .number("to")
        .map_or(usize::MAX, |to: usize| to + 1 - from);
    let namespace = line.namespace();
    let (mut lines, mut after) = (Vec::new(), None::<Vec<u8>>);
    loop {
        let range = PageRange {
            after: after.as_deref(),
            limit,
        };
        let found = view::report(&world.store, &namespace, &run_id, range).expect("memory");
        let page = match found {
            FoundReport::Page(page) => page,
            other => return format!("{other:?}\n"),
        };
        let ReportPage {
            steps,
            usage,
            next,
            is_incomplete,
            run: _,
        } = page;
        lines.extend(usage.iter().flat_map(used));
        lines.extend(steps.iter().flat_map(visit));
        after = next;
        if after.is_none() {
            lines.extend(is_incomplete.then(|| "incomplete".to_owned()));
            return listed(lines.into_iter().skip(from.saturating_sub(1)).take(to));
        }
        lines.push("next page".to_owned());
    }
}

fn used(usage: &UsageView) -> Vec<String> {
    let (own, below) = (usage.own.as_str(), usage.below.as_str());
    let steps = usage.steps.iter();
    let steps = steps.map(|(step, sums)| format!("  {step} used {}", sums.as_str()));
    std::iter::once(format!("used {own}, below {below}"))
        .chain(steps)
        .collect()
}

fn visit(step: &ReportedStep) -> Vec<String> {
    let place = match step.scope.as_str() {
        "" => step.step.to_string(),
        scope => format!("{scope}/{}", step.step),
    };
    let mut text = format!(
        "{place}#{} {} {} {}",
        step.visit,
        step.kind,
        match (&step.outcome, step.is_active) {
            (Some(outcome), _) => outcome.as_str(),
            (None, true) => "active",
            (None, false) => "ended",
        },
        period(step.started_at_ms, step.ended_at_ms),
    );
    if let Some(phase) = step.phase {
        text += &format!(" in {}", phase.name());
    }
    for (name, value) in [("input", &step.input), ("output", &step.output)] {
        if let Some(value) = value {
            text += &format!(" {name}={}", value.as_str());
        }
    }
    let (shown, all) = (step.attempts.len(), step.attempts_count);
    if usize::try_from(all) != Ok(shown) {
        text += &format!(" {shown} of {all} attempts");
    }
    let attempts = step.attempts.iter().map(attempt);
    std::iter::once(text).chain(attempts).collect()
}

fn attempt(attempt: &ReportedAttempt) -> String {
    let mut text = format!(
        "  {} {} {}",
        attempt.number,
        attempt.outcome.as_ref().map_or("open", |one| one.as_str()),
        period(attempt.started_at_ms, attempt.ended_at_ms)
    );
    if let Some(worker) = &attempt.worker {
        text += &format!(" on {worker}");
    }
    if let Some(executor) = &attempt.executor {
        text += &format!(" by {executor}");
    }
    if let Some(child) = &attempt.child {
        text += &format!(" calls {child}");
    }
    if let Some(error) = &attempt.error {
        text += &format!(" {}: {}", error.code, error.message);
    }
    text
}

fn period(from_ms: Option<u64>, to_ms: Option<u64>) -> String {
    let show = |at_ms: Option<u64>| at_ms.map_or_else(|| "?".to_owned(), |at_ms| at_ms.to_string());
    format!("{}..{}", show(from_ms), show(to_ms))
}

fn scope(view: &ScopeView, depth: usize) -> Vec<String> {
    let kind = match view.kind {
        ScopeKind::Root => "root",
        ScopeKind::Branch => "branch",
        ScopeKind::Item => "item",
        ScopeKind::Block => "block",
        ScopeKind::Handler => "handler",
    };
    let status = match &view.status {
        ScopeStatus::Running => "running".to_owned(),
        ScopeStatus::Waiting => "waiting".to_owned(),
        ScopeStatus::Cancelling => "cancelling".to_owned(),
        ScopeStatus::Ended(outcome) => format!("ended {outcome}"),
    };
    let progress = view.progress.map_or_else(String::new, |progress| {
        let (done, total) = (progress.done_count, progress.total_count);
        format!(" {done} of {total} done, {} failed", progress.failed_count)
    });
    let path = match view.path.as_str() {
        "" => "run",
        path => path,
    };
    let indent = "  ".repeat(depth);
    let own = format!("{indent}{path} {kind} {status}{progress}");
    let below = view.scopes.iter().flat_map(|below| scope(below, depth + 1));
    std::iter::once(own).chain(below).collect()
}
