//! Schedules fire (W40).
//!
//! What a due schedule waits for is asked here, outside `apply`: a calendar's answer must not depend
//! on the version of a library. The command names what it fires, so that two leaders cannot fire it
//! twice.

use super::Driver;
use crate::limits::RETRY_DELAY_MIN;
use flotilla_engine::Command;
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::tables::DefinitionNumber;
use flotilla_engine::view::{self, DueSchedule, DueSchedules};
use futures::future::join_all;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// Schedules that are fired together.
const BATCH_SCHEDULES_MAX: usize = 256;
/// How long a schedule is left alone that this node's calendar does not know.
const UNKNOWN_DELAY: Duration = Duration::from_secs(60);
/// How long the driver waits when the state could not be read.
const READ_DELAY_MS: u64 = 1_000;

/// Fires what is due, then sleeps until the next firing or until a schedule changes.
pub(super) async fn drive(driver: &Driver) {
    let mut unknown = Unknown::default();
    loop {
        let now_ms = driver.context.gateway.replica().now_ms();
        unknown.forget_until(Instant::now());
        let due = look(
            driver,
            (now_ms, BATCH_SCHEDULES_MAX + unknown.schedules.len()),
        );
        let commands: Vec<Command> = due
            .schedules
            .iter()
            .filter_map(|schedule| command(schedule, now_ms, &mut unknown))
            .collect();
        if commands.is_empty() {
            rest(driver, (now_ms, due.next_due_ms), unknown.next_try()).await;
        } else if !submit_all(driver, commands).await {
            sleep(RETRY_DELAY_MIN).await;
        }
    }
}

fn look(driver: &Driver, (now_ms, count_max): (u64, usize)) -> DueSchedules {
    let read = driver
        .context
        .gateway
        .read_here(|reader| view::due_schedules(reader, now_ms, count_max));
    read.unwrap_or_else(|refusal| {
        tracing::warn!(%refusal, "due schedules could not be read");
        DueSchedules {
            schedules: Vec::new(),
            next_due_ms: Some(now_ms + READ_DELAY_MS),
        }
    })
}

/// What the schedule waits for, unless this node does not know it.
fn command(due: &DueSchedule, now_ms: u64, unknown: &mut Unknown) -> Option<Command> {
    if unknown.schedules.contains_key(&key(due)) {
        return None;
    }
    match flotilla_dsl::schedule::command(due, now_ms) {
        Ok(body) => body.map(|body| Command::new(due.namespace.clone(), body)),
        Err(error) => {
            let (namespace, workflow) = (&due.namespace, &due.workflow);
            tracing::warn!(%error, %namespace, %workflow, "a schedule cannot be understood");
            unknown
                .schedules
                .insert(key(due), Instant::now() + UNKNOWN_DELAY);
            None
        }
    }
}

/// Fires schedules together: they travel in few entries. False when none was accepted, so that a
/// cluster whose time stands still is not flooded.
async fn submit_all(driver: &Driver, commands: Vec<Command>) -> bool {
    let results = join_all(commands.into_iter().map(|command| driver.submit(command))).await;
    for refusal in results.iter().filter_map(|result| result.as_ref().err()) {
        // Most often a leader before this one fired it, the schedule has changed since it was read,
        // or it is due by this node's clock but not by the log's.
        tracing::debug!(%refusal, "a schedule was not fired");
    }
    results.iter().any(Result::is_ok)
}

/// Sleeps until the next firing, until a schedule changes, or until `next_try`.
async fn rest(driver: &Driver, (now_ms, due_ms): (u64, Option<u64>), next_try: Option<Instant>) {
    let wait = |due_ms: u64| Duration::from_millis(due_ms.saturating_sub(now_ms).max(1));
    let firing = due_ms.map(|due_ms| Instant::now() + wait(due_ms));
    match firing.into_iter().chain(next_try).min() {
        None => driver.signals.schedules_changed().await,
        Some(until) => tokio::select! {
            () = sleep_until(until) => {}
            () = driver.signals.schedules_changed() => {}
        },
    }
}

/// A revision of a workflow.
type ScheduleKey = (Namespace, WorkflowName, DefinitionNumber);

fn key(due: &DueSchedule) -> ScheduleKey {
    (due.namespace.clone(), due.workflow.clone(), due.definition)
}

/// Schedules that are due but cannot be understood here, as when this node's time zones are older
/// than those of the node which accepted them. They stay due, for a leader that knows better.
#[derive(Default)]
struct Unknown {
    /// When each is looked at again.
    schedules: BTreeMap<ScheduleKey, Instant>,
}

impl Unknown {
    fn forget_until(&mut self, now: Instant) {
        self.schedules.retain(|_, again| *again > now);
    }

    fn next_try(&self) -> Option<Instant> {
        self.schedules.values().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::Body;
    use flotilla_engine::definition::{Schedule, Timing};
    use flotilla_engine::tables::NextFiring;

    fn due(timezone: &str) -> DueSchedule {
        DueSchedule {
            namespace: Namespace::default_namespace(),
            workflow: WorkflowName::new("reconcile").unwrap(),
            definition: DefinitionNumber(1),
            created_at_ms: 0,
            schedule: Schedule {
                timing: Timing::Cron {
                    expression: "* * * * *".to_owned(),
                    timezone: timezone.to_owned(),
                },
                max_concurrent: 1,
                input: "{}".to_owned(),
                paused: false,
                catchup_window_ms: 0,
            },
            next: NextFiring::At { due_ms: 60_000 },
        }
    }

    #[test]
    fn a_due_schedule_is_fired_where_it_belongs() {
        let command = command(&due("UTC"), 60_001, &mut Unknown::default()).unwrap();
        assert_eq!(command.namespace, Namespace::default_namespace());
        assert!(matches!(command.body, Body::FireSchedule(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_schedule_that_is_not_understood_is_left_alone_for_a_minute() {
        let mut unknown = Unknown::default();
        assert!(command(&due("Moon/Tycho"), 60_001, &mut unknown).is_none());
        assert!(unknown.schedules.contains_key(&key(&due("UTC"))));
        assert!(command(&due("UTC"), 60_001, &mut unknown).is_none());
        let again = unknown.next_try().unwrap();
        assert_eq!(again, Instant::now() + UNKNOWN_DELAY);
        unknown.forget_until(again);
        assert!(command(&due("UTC"), 60_001, &mut unknown).is_some());
    }
}
