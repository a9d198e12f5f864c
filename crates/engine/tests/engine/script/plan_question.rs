//! What is known of a plan, as `flo plan status` shows it.

use super::line::Line;
use super::show::line as add;
use super::show::option;
use super::world::World;
use flotilla_engine::ids::{Namespace, PlanName, PlanRef, RunId, WorkflowName};
use flotilla_engine::view::{self, BreakerView, ExecutorView, RateView};

/// `show plan WORKFLOW PLAN`
pub(super) fn show(world: &World, line: &mut Line) -> String {
    let name = PlanRef {
        workflow: WorkflowName::new(line.word()).expect("a workflow name"),
        plan: PlanName::new(line.word()).expect("a plan name"),
    };
    let namespace = Namespace::default_namespace();
    let view = view::plan(&world.store, &namespace, &name, world.now_ms());
    let Some(view) = view.expect("memory does not fail") else {
        return "none\n".to_owned();
    };
    let mut out = String::new();
    for executor in &view.executors {
        add(&mut out, executor_in_words(executor));
    }
    if let Some(cache) = view.cache {
        let (count, bytes) = (cache.results_count, cache.bytes);
        add(&mut out, format!("cached {count} of {bytes} bytes"));
    }
    out
}

/// `show waiting RUN`: what callers see of an open run (W21, W21a).
pub(super) fn show_waiting(world: &World, line: &mut Line) -> String {
    let id = RunId::new(line.word()).expect("a run id");
    let view = view::run(&world.store, &Namespace::default_namespace(), &id);
    let view = view.expect("memory does not fail").expect("the run exists");
    let mut out = String::new();
    for step in &view.current_steps {
        let (name, waiting) = (&step.step, step.waiting_for);
        let reason = waiting.map(|(reason, _)| format!("{reason:?}"));
        let deadline_at_ms = waiting.and_then(|(_, deadline_at_ms)| deadline_at_ms);
        let (reason, until) = (option(" for ", &reason), option(" until ", &deadline_at_ms));
        add(&mut out, format!("{name} waits{reason}{until}"));
    }
    add(
        &mut out,
        format!("detail {}", view.detail.unwrap_or_default()),
    );
    out
}

fn executor_in_words(executor: &ExecutorView) -> String {
    let health = executor.health.map(|health| {
        let (score, api, business) = (health.score, health.api_success, health.business_success);
        let samples = health.samples_count;
        format!("{score} (api {api} business {business} of {samples})")
    });
    let breaker = executor.breaker.as_ref().map(breaker_in_words);
    let rates: String = executor.rates.iter().map(rate_in_words).collect();
    format!(
        "{} runs {} priority {}{}{}{rates}",
        executor.name,
        executor.action,
        executor.priority,
        option(", health ", &health),
        option(", breaker ", &breaker)
    )
}

fn breaker_in_words(breaker: &BreakerView) -> String {
    format!(
        "{} failures {} of {} probes {} of {}{}",
        breaker.status.name(),
        breaker.failures_count,
        breaker.failure_threshold,
        breaker.open_probe_count,
        breaker.probes_max,
        option(" until ", &breaker.open_until_ms)
    )
}

fn rate_in_words(rate: &RateView) -> String {
    let (window, max) = (rate.window.name(), rate.calls_max);
    format!(", {} of {max} calls a {window} left", rate.calls_remaining)
}
