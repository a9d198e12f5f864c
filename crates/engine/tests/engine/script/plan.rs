//! Plans in a few lines.
//!
//! ```text
//! define order 1
//!   plan payment health-weighted health(300000 900000 10) fallback({"status":"declined"} any_error)
//!   plan lookup cache(1000 {input.c}:{mapped.n} on=refunded) errors(retryable=timeout fatal=fraud)
//!   executor payment stripe @charge priority=100 retry(3 constant 100) breaker(5 30000 3)
//!   executor lookup books @find rate(second=100 minute=5000) async(300000)
//!   start: run @plan/payment -> success=flo.Completed
//! ```

use super::definition::{keyword, retry};
use super::line::Line;
use flotilla_engine::definition::{
    Breaker, Cache, CacheKeyPart, ErrorClasses, Executor, ExecutorExtensions, Fallback,
    FallbackCondition, Health, Plan, PlanExtensions, RateLimit, Segment, Selection, Tracking,
};
use flotilla_engine::ids::{ActionName, ErrorCode, EventName, ExecutorName, PlanName};

/// The plans of a definition, in the order of their lines.
pub(super) fn plans(body: &[&str]) -> Vec<Plan> {
    keyword(body, "plan")
        .map(|mut line| plan(&mut line, body))
        .collect()
}

fn plan(line: &mut Line, body: &[&str]) -> Plan {
    let name = line.word();
    let mut plan = Plan {
        selection: Selection::StaticOrder,
        executors: executors(body, &name),
        name: PlanName::new(name).expect("a plan name"),
        health: None,
        cache: None,
        fallback: None,
        errors: None,
        extensions: PlanExtensions::default(),
    };
    while let Some(word) = line.next() {
        match word.trim_end_matches(')').split_once('(') {
            None => plan.selection = selection(&word),
            Some(("health", text)) => plan.health = Some(health(text)),
            Some(("cache", text)) => plan.cache = Some(cache(text)),
            Some(("fallback", text)) => plan.fallback = Some(fallback(text)),
            Some(("errors", text)) => plan.errors = Some(errors(text)),
            Some(other) => panic!("expected a block of plans, but found {other:?}"),
        }
    }
    plan
}

fn selection(word: &str) -> Selection {
    match word {
        "static-order" => Selection::StaticOrder,
        "round-robin" => Selection::RoundRobin,
        "random" => Selection::Random,
        "health-weighted" => Selection::HealthWeighted,
        other => panic!("expected a selection, but found {other}"),
    }
}

fn executors(body: &[&str], plan: &str) -> Vec<Executor> {
    keyword(body, "executor")
        .filter_map(|mut line| (line.word() == plan).then(|| executor(&mut line)))
        .collect()
}

fn executor(line: &mut Line) -> Executor {
    let action = |text: String| {
        let name = text.strip_prefix('@').expect("an action begins with @");
        ActionName::new(name).expect("an action name")
    };
    let mut executor = Executor {
        name: ExecutorName::new(line.word()).expect("an executor name"),
        action: action(line.word()),
        priority: line.number("priority").unwrap_or(100),
        retry: None,
        breaker: None,
        rate_limit: None,
        tracking: Tracking::Sync,
        extensions: ExecutorExtensions::default(),
    };
    while let Some(word) = line.next() {
        match word.trim_end_matches(')').split_once('(') {
            Some(("retry", text)) => executor.retry = Some(retry(text)),
            Some(("breaker", text)) => executor.breaker = Some(breaker(text)),
            Some(("rate", text)) => executor.rate_limit = Some(rate(text)),
            Some(("async", text)) => {
                executor.tracking = tracking(text);
            }
            _ => panic!("expected a block of executors, but found {word}"),
        }
    }
    executor
}

/// `5 30000 3`: threshold, cooldown, probes.
fn breaker(text: &str) -> Breaker {
    let mut line = Line::parse(text);
    Breaker {
        failure_threshold: line.next_number(),
        cooldown_ms: line.next_number(),
        half_open_max_calls: line.next_number(),
    }
}

/// `second=100 minute=5000 hour=50000`
fn rate(text: &str) -> RateLimit {
    let mut line = Line::parse(text);
    RateLimit {
        max_per_second: line.number("second"),
        max_per_minute: line.number("minute"),
        max_per_hour: line.number("hour"),
    }
}

/// `300000 900000 10`: window, decay in millionths, results.
fn health(text: &str) -> Health {
    let mut line = Line::parse(text);
    Health {
        window_ms: line.next_number(),
        decay_millionths: line.next_number(),
        min_samples: line.next_number(),
    }
}

/// `1000 charge:{input.c}:{mapped.n} on=refunded,deleted`: how long, the key, the events.
fn cache(text: &str) -> Cache {
    let mut line = Line::parse(text);
    let event = |name: &str| EventName::new(name).expect("an event name");
    Cache {
        ttl_ms: line.next_number(),
        key: key(&line.word()),
        invalidate_on: listed(&mut line, "on")
            .iter()
            .map(|name| event(name))
            .collect(),
    }
}

fn key(text: &str) -> Vec<CacheKeyPart> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((literal, tail)) = rest.split_once('{') {
        let (hole, tail) = tail.split_once('}').expect("a hole ends");
        let mut names = hole.split('.');
        let root = names.next();
        let segments = names.map(|name| Segment::Field(name.to_owned())).collect();
        parts.push(CacheKeyPart::Literal(literal.to_owned()));
        parts.push(match root {
            Some("input") => CacheKeyPart::Input(segments),
            Some("mapped") => CacheKeyPart::Mapped(segments),
            other => panic!("expected a root of cache keys, but found {other:?}"),
        });
        rest = tail;
    }
    parts.push(CacheKeyPart::Literal(rest.to_owned()));
    parts.retain(|part| *part != CacheKeyPart::Literal(String::new()));
    parts
}

/// `{"status":"declined"} any_error`
fn fallback(text: &str) -> Fallback {
    let mut line = Line::parse(text);
    Fallback {
        value: line.word(),
        condition: match line.next().as_deref() {
            None | Some("exhausted") => FallbackCondition::Exhausted,
            Some("any_error") => FallbackCondition::AnyError,
            Some(other) => panic!("expected a condition, but found {other}"),
        },
    }
}

/// `retryable=timeout,busy fatal=fraud`
fn errors(text: &str) -> ErrorClasses {
    let mut line = Line::parse(text);
    let code = |name: &String| ErrorCode::new(name.clone()).expect("a code");
    let fatal = listed(&mut line, "fatal").iter().map(code).collect();
    let retryable = listed(&mut line, "retryable");
    ErrorClasses {
        retryable: (!retryable.is_empty()).then(|| retryable.iter().map(code).collect()),
        fatal,
    }
}

fn listed(line: &mut Line, name: &str) -> Vec<String> {
    let text = line.option(name).unwrap_or_default();
    let names = text.split(',').filter(|name| !name.is_empty());
    names.map(ToOwned::to_owned).collect()
}

/// `500`, or nothing without a timeout.
pub(super) fn tracking(text: &str) -> Tracking {
    let timeout_ms = (!text.is_empty()).then(|| Line::parse(text).next_number());
    Tracking::Async { timeout_ms }
}
