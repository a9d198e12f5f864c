//! The schedule driver: fires due schedules (W40).
//!
//! The next scheduled times are computed here, outside `apply`, because a calendar's result must
//! not depend on a library's version. The command names the firing, so that two leaders cannot fire
//! it twice.

use super::Driver;
use super::backoff::Backoff;
use super::deferred::Deferred;
use crate::error::Error;
use crate::limits::SCHEDULES_BATCH_MAX;
use flotilla_engine::Command;
use flotilla_engine::DefinitionNumber;
use flotilla_engine::ids::{Namespace, WorkflowName};
use flotilla_engine::view::{DueCursor, DueSchedule};
use tokio::time::{Instant, sleep_until};

/// Fires what is due, then sleeps until the next firing or until a schedule changes.
pub(super) async fn drive(driver: &Driver) {
    let mut backoff = Backoff::default();
    let mut cursor = DueCursor::default();
    let mut unknown = Deferred::default();
    loop {
        let looked = look(driver, &mut cursor, &mut unknown).await;
        backoff.after(looked).await;
    }
}

/// Fires what is due, or sleeps until something may be. An error if nothing due could be fired.
async fn look(
    driver: &Driver,
    cursor: &mut DueCursor,
    unknown: &mut Deferred<ScheduleKey>,
) -> Result<(), Error> {
    if let Some(due_ms) = driver.wakeups.schedules.look() {
        cursor.lower(due_ms);
    }
    let now_ms = driver.now_ms();
    unknown.forget_until(Instant::now());
    let count_max = SCHEDULES_BATCH_MAX + unknown.len();
    let due = driver
        .read(|reader| cursor.due_schedules(reader, now_ms, count_max))
        .await;
    let commands: Vec<Command> = due
        .schedules
        .iter()
        .filter_map(|schedule| command(schedule, now_ms, unknown))
        .collect();
    if commands.is_empty() {
        rest(driver, now_ms, due.next_due_ms, unknown.next_try()).await;
        return Ok(());
    }
    driver.submit_all(commands).await
}

/// The command for a due schedule; `None` if this node cannot interpret the schedule.
fn command(due: &DueSchedule, now_ms: u64, unknown: &mut Deferred<ScheduleKey>) -> Option<Command> {
    if unknown.contains(&key(due)) {
        return None;
    }
    match flotilla_dsl::schedule::command(due, now_ms) {
        Ok(body) => body.map(|body| body.into_command(due.namespace.clone())),
        Err(error) => {
            let (namespace, workflow) = (&due.namespace, &due.workflow);
            tracing::warn!(%error, %namespace, %workflow, "a schedule cannot be interpreted");
            unknown.add(key(due));
            None
        }
    }
}

/// Sleeps until the next firing, until a schedule changes, or until `next_try`.
async fn rest(driver: &Driver, now_ms: u64, due_ms: Option<u64>, next_try: Option<Instant>) {
    let firing = driver.wakeups.schedules.sleep(now_ms, due_ms);
    match next_try {
        None => firing.await,
        Some(next_try) => tokio::select! {
            () = firing => {}
            () = sleep_until(next_try) => {}
        },
    }
}

/// A revision of a workflow. A due schedule that this node cannot interpret is deferred, for
/// example if this node's time zones are older than those of the node that accepted it.
type ScheduleKey = (Namespace, WorkflowName, DefinitionNumber);

fn key(due: &DueSchedule) -> ScheduleKey {
    (due.namespace.clone(), due.workflow.clone(), due.definition)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::DEFER_DELAY;
    use flotilla_engine::Body;
    use flotilla_engine::NextFiring;
    use flotilla_engine::definition::{Schedule, Timing};

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
        let command = command(&due("UTC"), 60_001, &mut Deferred::default()).unwrap();
        assert_eq!(command.scope, Namespace::default_namespace().into());
        assert!(matches!(command.body, Body::FireSchedule(_)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_schedule_that_is_not_understood_is_left_alone_for_a_minute() {
        let mut unknown = Deferred::default();
        assert!(command(&due("Moon/Tycho"), 60_001, &mut unknown).is_none());
        assert!(unknown.contains(&key(&due("UTC"))));
        assert!(command(&due("UTC"), 60_001, &mut unknown).is_none());
        let again = unknown.next_try().unwrap();
        assert_eq!(again, Instant::now() + DEFER_DELAY);
        unknown.forget_until(again);
        assert!(command(&due("UTC"), 60_001, &mut unknown).is_some());
    }
}
