//! Converts schedules to messages.

use flotilla_api::v1;
use flotilla_engine::definition::Timing;
use flotilla_engine::ids::WorkflowName;
use flotilla_engine::view::{ScheduleState, ScheduleView};

/// Converts a workflow's schedule; `next_at_ms` are its next firings.
pub(crate) fn message(
    workflow: &WorkflowName,
    view: ScheduleView,
    next_at_ms: Vec<u64>,
) -> v1::Schedule {
    let (cron, timezone, interval_ms) = match view.schedule.timing {
        Timing::Cron {
            expression,
            timezone,
        } => (expression, timezone, None),
        Timing::Interval { every_ms } => (String::new(), String::new(), Some(every_ms)),
    };
    let (last_fired_at_ms, last_run_id) = match view.last_fired {
        Some((firing, run_id)) => (Some(firing.firing_ms), run_id.to_string()),
        None => (None, String::new()),
    };
    v1::Schedule {
        workflow: workflow.to_string(),
        cron,
        timezone,
        interval_ms,
        state: state(view.state).into(),
        max_concurrent: view.schedule.max_concurrent,
        open_run_count: view.open_count,
        quarantined_runs: view.quarantined_count,
        last_fired_at_ms,
        last_run_id,
        last_skipped_at_ms: view.last_skipped_ms,
        fired_count: view.fired_count,
        skipped_count: view.skipped_count,
        next_at_ms,
    }
}

fn state(state: ScheduleState) -> v1::ScheduleState {
    match state {
        ScheduleState::Active => v1::ScheduleState::Active,
        ScheduleState::Paused => v1::ScheduleState::Paused,
        ScheduleState::Disabled => v1::ScheduleState::Disabled,
        ScheduleState::Quarantined => v1::ScheduleState::Quarantined,
    }
}
