//! Parses commands on schedules and renders them.

use super::line::Line;
use super::show::option;
use super::world::World;
use flotilla_engine::ids::{Namespace, RunId, WorkflowName};
use flotilla_engine::rows::{DefinitionNumber, NextFiring, Schedules};
use flotilla_engine::view::{self, DueCursor};
use flotilla_engine::{Body, FireSchedule, SetNextFiring};

/// `plan NAME expected=1000 next=2000`, `fire-schedule NAME expected=1000 next=2000`. Without `next`, no firing
/// follows; without `definition`, the live revision is meant.
pub(super) fn command(world: &World, verb: &str, line: &mut Line) -> Option<Body> {
    if !matches!(verb, "plan" | "fire-schedule") {
        return None;
    }
    let workflow = WorkflowName::new(line.word()).expect("a workflow name");
    let definition = match line.number("definition") {
        Some(number) => DefinitionNumber(number),
        None => live_definition(world, &workflow),
    };
    let expected_ms = line.number("expected").expect("expected=MS");
    let next_ms = line.number("next");
    Some(match verb {
        "plan" => Body::SetNextFiring(SetNextFiring {
            workflow,
            definition,
            expected_ms,
            next_ms,
        }),
        _ => Body::FireSchedule(FireSchedule {
            workflow,
            definition,
            expected_ms,
            next_ms,
        }),
    })
}

fn live_definition(world: &World, workflow: &WorkflowName) -> DefinitionNumber {
    let key = (Namespace::default_namespace(), workflow.clone());
    let live = world.read::<Schedules>(&key).and_then(|record| record.live);
    live.map_or(DefinitionNumber(0), |live| live.definition)
}

/// What the driver would look at now.
pub(super) fn due(world: &World) -> Vec<String> {
    let due = DueCursor::default()
        .due_schedules(&world.store, world.now_ms(), 100)
        .expect("memory");
    let mut lines: Vec<String> = due
        .schedules
        .iter()
        .map(|due| {
            let next = match due.next {
                NextFiring::Unplanned { from_ms } => format!("to be planned from {from_ms}"),
                NextFiring::At { due_ms } => format!("fires at {due_ms}"),
                NextFiring::Never => "never".to_owned(),
            };
            format!(
                "{} of definition {}: {next}",
                due.workflow, due.definition.0
            )
        })
        .collect();
    lines.extend(due.next_due_ms.map(|next_ms| format!("then at {next_ms}")));
    lines
}

pub(super) fn show(world: &World, workflow: &WorkflowName) -> String {
    let namespace = Namespace::default_namespace();
    let found = view::schedule(&world.store, &namespace, workflow).expect("memory");
    let Some(view) = found else {
        return "none\n".to_owned();
    };
    let last = view
        .last_fired
        .map(|(firing, run)| format!("{} at {} as {run}", firing.firing_ms, firing.fired_at_ms));
    let quarantined = Some(view.quarantined_count).filter(|count| *count > 0);
    format!(
        "{} by {} revision {}{}, open {}{} fired {} skipped {}{}{}\n",
        view.state.name(),
        view.version,
        view.revision,
        option(" next ", &view.next_ms),
        view.open_count,
        option(" quarantined ", &quarantined),
        view.fired_count,
        view.skipped_count,
        option(", last ", &last),
        option(", skipped last ", &view.last_skipped_ms)
    )
}

/// The reply to a firing.
pub(super) fn fired(run_id: Option<&RunId>) -> String {
    run_id.map_or_else(|| "skipped".to_owned(), |run_id| format!("fired {run_id}"))
}
