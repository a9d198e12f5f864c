//! A workflow's schedule.

use super::name;
use crate::time;
use flotilla_client::v1;
use serde::Serialize;

/// A schedule.
#[derive(Debug, Serialize)]
pub(crate) struct ScheduleView {
    workflow: String,
    cron: Option<String>,
    timezone: Option<String>,
    interval_ms: Option<u64>,
    state: String,
    max_concurrent: u32,
    open_run_count: u32,
    quarantined_runs: u32,
    last_fired_at_ms: Option<u64>,
    last_run_id: Option<String>,
    last_skipped_at_ms: Option<u64>,
    fired_count: u64,
    skipped_count: u64,
    next_at_ms: Vec<u64>,
}

impl From<v1::Schedule> for ScheduleView {
    fn from(schedule: v1::Schedule) -> Self {
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        Self {
            state: name(schedule.state()),
            workflow: schedule.workflow,
            cron: given(schedule.cron),
            timezone: given(schedule.timezone),
            interval_ms: schedule.interval_ms,
            max_concurrent: schedule.max_concurrent,
            open_run_count: schedule.open_run_count,
            quarantined_runs: schedule.quarantined_runs,
            last_fired_at_ms: schedule.last_fired_at_ms,
            last_run_id: given(schedule.last_run_id),
            last_skipped_at_ms: schedule.last_skipped_at_ms,
            fired_count: schedule.fired_count,
            skipped_count: schedule.skipped_count,
            next_at_ms: schedule.next_at_ms,
        }
    }
}

impl ScheduleView {
    /// The schedule for people: one property per line.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![
            ("workflow", self.workflow.clone()),
            ("fires", self.rule()),
            ("state", self.state.clone()),
            ("open runs", self.open()),
            ("fired", count(self.fired_count, self.last_fired_at_ms)),
            (
                "skipped",
                count(self.skipped_count, self.last_skipped_at_ms),
            ),
            (
                "last run",
                self.last_run_id.clone().unwrap_or_else(|| "-".to_owned()),
            ),
        ];
        let headings = std::iter::once("next").chain(std::iter::repeat(""));
        let next = self.next_at_ms.iter().map(|&at_ms| time::show(at_ms));
        lines.extend(headings.zip(next));
        let lines: Vec<String> = lines
            .into_iter()
            .map(|(heading, text)| format!("{heading:<11}{text}"))
            .collect();
        lines.join("\n")
    }

    fn open(&self) -> String {
        let running = self.open_run_count.saturating_sub(self.quarantined_runs);
        let open = format!("{running} of at most {}", self.max_concurrent);
        match self.quarantined_runs {
            0 => open,
            count => format!("{open}, and {count} quarantined"),
        }
    }

    fn rule(&self) -> String {
        match (&self.cron, &self.timezone, self.interval_ms) {
            (Some(cron), Some(timezone), _) => format!("{cron} ({timezone})"),
            (_, _, Some(interval_ms)) => format!("every {interval_ms} ms"),
            _ => "-".to_owned(),
        }
    }
}

fn count(count: u64, last_at_ms: Option<u64>) -> String {
    match last_at_ms {
        Some(at_ms) => format!("{count}, the last at {}", time::show(at_ms)),
        None => count.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn schedule() -> v1::Schedule {
        v1::Schedule {
            workflow: "reconcile".to_owned(),
            cron: "0 */6 * * *".to_owned(),
            timezone: "UTC".to_owned(),
            state: v1::ScheduleState::Active.into(),
            max_concurrent: 1,
            open_run_count: 1,
            last_fired_at_ms: Some(21_600_000),
            last_run_id: "wfrun-3".to_owned(),
            fired_count: 2,
            next_at_ms: vec![43_200_000, 64_800_000],
            ..v1::Schedule::default()
        }
    }

    #[test]
    fn a_schedule_has_the_published_fields() {
        expect![[r#"{"workflow":"reconcile","cron":"0 */6 * * *","timezone":"UTC","interval_ms":null,"state":"active","max_concurrent":1,"open_run_count":1,"quarantined_runs":0,"last_fired_at_ms":21600000,"last_run_id":"wfrun-3","last_skipped_at_ms":null,"fired_count":2,"skipped_count":0,"next_at_ms":[43200000,64800000]}"#]]
            .assert_eq(&serde_json::to_string(&ScheduleView::from(schedule())).expect("printable"));
    }

    #[test]
    fn a_person_reads_what_it_did_and_what_it_will_do() {
        expect![[r#"
            workflow   reconcile
            fires      0 */6 * * * (UTC)
            state      active
            open runs  1 of at most 1
            fired      2, the last at 1970-01-01T06:00:00.000Z
            skipped    0
            last run   wfrun-3
            next       1970-01-01T12:00:00.000Z
                       1970-01-01T18:00:00.000Z"#]]
        .assert_eq(&ScheduleView::from(schedule()).text());
    }
}
