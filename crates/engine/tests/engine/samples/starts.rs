//! What starts runs: schedules and triggers.

use super::*;

pub(super) fn schedule() -> Schedule {
    Schedule {
        timing: Timing::Cron {
            expression: "0 * * * *".to_owned(),
            timezone: "UTC".to_owned(),
        },
        max_concurrent: 1,
        input: "{}".to_owned(),
        paused: false,
        catchup_window_ms: 0,
    }
}

pub(super) fn trigger() -> Trigger {
    Trigger {
        stream: name("events"),
        namespace: None,
        consumer_group: name("wf-order"),
        consumption: GroupMode::KeyShared,
        batch_size: 10,
        batch_timeout_ms: 5_000,
        when: Some(expression()),
    }
}
