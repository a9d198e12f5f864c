//! Renders traces: the runs of a trace, and the spans that they add.

use super::event::event_as_published;
use super::line::Line;
use super::question::listed;
use super::world::World;
use flotilla_engine::ids::{ActionRunNumber, RunId, RunNumber};
use flotilla_engine::rows::Runs;
use flotilla_engine::view::{self, StepVisit};
use flotilla_engine::{NodeId, TraceContext};

pub(super) const QUESTIONS: [&str; 3] = ["traces", "left", "visit"];

/// A trace as `traceparent` spells it.
pub(super) fn parse(text: &str) -> TraceContext {
    let parts: Vec<&str> = text.split('-').collect();
    let ["00", trace_id, parent_id, flags] = parts[..] else {
        panic!("expected 00-TRACE-PARENT-FLAGS, but found {text}");
    };
    let trace_id = u128::from_str_radix(trace_id, 16).expect("hexadecimal digits");
    let parent_id = u64::from_str_radix(parent_id, 16).expect("hexadecimal digits");
    let trace = TraceContext::new(
        trace_id.to_be_bytes(),
        parent_id.to_be_bytes(),
        flags == "01",
    );
    trace.expect("both ids name something")
}

/// The answer to a question about traces; `None` for any other.
pub(super) fn answer(world: &World, verb: &str, line: &mut Line) -> Option<String> {
    Some(match verb {
        "traces" => {
            let runs = world.rows::<Runs>().into_iter();
            let traced = runs.filter_map(|(_, run)| Some((run.id, run.trace?)));
            listed(traced.map(|(id, trace)| format!("{id} {}", spelt(&trace))))
        }
        "left" => left(world, line),
        "visit" => visit(world, &line.word()),
        _ => return None,
    })
}

/// `left RUN` shows the visits that ended with the last entry; `left RUN since=3` those from that entry on.
fn left(world: &World, line: &mut Line) -> String {
    let run_id = RunId::new(line.word()).expect("a run id");
    let last = world.raft_index();
    let entries = line.number("since").unwrap_or(last)..=last;
    let found = view::steps_left(&world.store, &line.namespace(), &run_id, entries);
    let found = found.expect("memory does not fail").into_iter();
    listed(found.map(describe))
}

fn describe(visit: StepVisit) -> String {
    let (entered_at_ms, left_at_ms) = (visit.key.entered_at_ms, visit.left_at_ms);
    let (workflow, version) = (&visit.workflow, &visit.version);
    let NodeId(node) = visit.node;
    let mut text = format!(
        "{} of {workflow} {version} {entered_at_ms}..{left_at_ms} {}{} attempts {} node {node}{}",
        visit.step,
        visit
            .outcome
            .as_ref()
            .map_or("by the run's end", |one| one.as_str()),
        if visit.is_failure { ", failed," } else { "" },
        visit.attempts,
        visit
            .trace
            .map_or_else(String::new, |trace| format!(" {}", spelt(&trace))),
    );
    if visit.is_beginning_missing {
        text.push_str("\n  …");
    }
    for event in visit.events {
        text.push('\n');
        text.push_str(&event_as_published(event));
    }
    text
}

/// Where a task belongs.
fn visit(world: &World, id: &str) -> String {
    let number = ActionRunNumber::from_id(id).expect("an action run's id");
    let found = view::task_visit(&world.store, number).expect("memory does not fail");
    let Some(visit) = found else {
        return "none\n".to_owned();
    };
    let view::VisitKey {
        run,
        scope: _,
        step,
        entered_at_ms,
    } = visit.key;
    let trace = visit
        .trace
        .map_or_else(|| "no trace".to_owned(), |trace| spelt(&trace));
    let run = self::id(world, run);
    format!("{run} step {} since {entered_at_ms} in {trace}\n", step.0)
}

fn id(world: &World, number: RunNumber) -> RunId {
    world.read::<Runs>(&number).expect("the run exists").id
}

fn spelt(trace: &TraceContext) -> String {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let (trace_id, parent_id) = (hex(&trace.trace_id()), hex(&trace.parent_id()));
    format!(
        "00-{trace_id}-{parent_id}-0{}",
        u8::from(trace.is_sampled())
    )
}
