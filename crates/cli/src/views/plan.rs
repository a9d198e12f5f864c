//! A plan and its executors.

use super::or_dash;
use crate::output::{self, Row};
use crate::time;
use flotilla_client::{PublishedName, v1};
use serde::Serialize;

/// A plan and the state of its executors.
#[derive(Debug, Serialize)]
pub(crate) struct PlanView {
    workflow: String,
    plan: String,
    selection: String,
    cached_result_count: u64,
    executors: Vec<ExecutorRow>,
}

/// An executor. Values that its definition does not set are `null`.
#[derive(Debug, Serialize)]
struct ExecutorRow {
    name: String,
    action: String,
    priority: i32,
    health_millionths: Option<u32>,
    sample_count: u32,
    breaker: Option<String>,
    consecutive_failure_count: u32,
    breaker_half_open_at_ms: Option<u64>,
    open_probe_count: u32,
    remaining_per_second: Option<u32>,
    remaining_per_minute: Option<u32>,
    remaining_per_hour: Option<u32>,
}

impl PlanView {
    /// The plan as a sentence, and its executors as a table.
    pub(crate) fn text(&self) -> String {
        let Self {
            workflow,
            plan,
            selection,
            cached_result_count,
            executors,
        } = self;
        let executors = output::table(executors);
        format!(
            "plan {plan} of {workflow}, {selection}, cached results: {cached_result_count}\n\n{executors}"
        )
    }
}

impl From<v1::PlanStatus> for PlanView {
    fn from(status: v1::PlanStatus) -> Self {
        Self {
            workflow: status.workflow,
            plan: status.plan,
            selection: status.selection,
            cached_result_count: status.cached_result_count,
            executors: status.executors.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<v1::ExecutorStatus> for ExecutorRow {
    fn from(status: v1::ExecutorStatus) -> Self {
        Self {
            breaker: status.breaker().published_name(),
            name: status.name,
            action: status.action,
            priority: status.priority,
            health_millionths: status.health_millionths,
            sample_count: status.sample_count,
            consecutive_failure_count: status.consecutive_failure_count,
            breaker_half_open_at_ms: status.breaker_half_open_at_ms,
            open_probe_count: status.open_probe_count,
            remaining_per_second: status.remaining_per_second,
            remaining_per_minute: status.remaining_per_minute,
            remaining_per_hour: status.remaining_per_hour,
        }
    }
}

impl ExecutorRow {
    fn health(&self) -> Option<String> {
        let health = self.health_millionths?;
        let (whole, millionths) = (health / 1_000_000, health % 1_000_000);
        Some(format!(
            "{whole}.{:03} of {}",
            millionths / 1_000,
            self.sample_count
        ))
    }

    fn breaker(&self) -> Option<String> {
        let state = self.breaker.as_deref()?;
        Some(match self.breaker_half_open_at_ms {
            Some(until_ms) => format!("{state} until {}", time::show(until_ms)),
            None if self.open_probe_count > 0 => {
                format!("{state}, open probes: {}", self.open_probe_count)
            }
            None if self.consecutive_failure_count > 0 => {
                format!(
                    "{state}, consecutive failures: {}",
                    self.consecutive_failure_count
                )
            }
            None => state.to_owned(),
        })
    }

    fn calls_left(&self) -> Option<String> {
        let windows = [
            (self.remaining_per_second, "s"),
            (self.remaining_per_minute, "min"),
            (self.remaining_per_hour, "h"),
        ];
        let left: Vec<String> = windows
            .into_iter()
            .filter_map(|(remaining, window)| Some(format!("{}/{window}", remaining?)))
            .collect();
        Some(left.join(" "))
    }
}

impl Row for ExecutorRow {
    const HEADINGS: &'static [&'static str] = &[
        "EXECUTOR",
        "ACTION",
        "PRIORITY",
        "HEALTH",
        "BREAKER",
        "CALLS LEFT",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.action.clone(),
            self.priority.to_string(),
            or_dash(self.health().as_deref()),
            or_dash(self.breaker().as_deref()),
            or_dash(self.calls_left().as_deref()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn view() -> PlanView {
        let primary = v1::ExecutorStatus {
            name: "primary".to_owned(),
            action: "charge-stripe".to_owned(),
            priority: 100,
            health_millionths: Some(87_250),
            sample_count: 12,
            breaker: v1::BreakerState::Open.into(),
            breaker_half_open_at_ms: Some(1_772_357_400_250),
            remaining_per_second: Some(100),
            remaining_per_hour: Some(7),
            ..v1::ExecutorStatus::default()
        };
        let fallback = v1::ExecutorStatus {
            name: "fallback".to_owned(),
            action: "charge-adyen".to_owned(),
            priority: 50,
            ..v1::ExecutorStatus::default()
        };
        PlanView::from(v1::PlanStatus {
            workflow: "payment".to_owned(),
            plan: "charge".to_owned(),
            selection: "health-weighted".to_owned(),
            executors: vec![primary, fallback],
            cached_result_count: 3,
        })
    }

    #[test]
    fn a_plan_has_the_published_fields() {
        expect![[r#"{"workflow":"payment","plan":"charge","selection":"health-weighted","cached_result_count":3,"executors":[{"name":"primary","action":"charge-stripe","priority":100,"health_millionths":87250,"sample_count":12,"breaker":"open","consecutive_failure_count":0,"breaker_half_open_at_ms":1772357400250,"open_probe_count":0,"remaining_per_second":100,"remaining_per_minute":null,"remaining_per_hour":7},{"name":"fallback","action":"charge-adyen","priority":50,"health_millionths":null,"sample_count":0,"breaker":null,"consecutive_failure_count":0,"breaker_half_open_at_ms":null,"open_probe_count":0,"remaining_per_second":null,"remaining_per_minute":null,"remaining_per_hour":null}]}"#]].assert_eq(&serde_json::to_string(&view()).expect("printable"));
    }

    #[test]
    fn what_is_not_set_is_a_dash() {
        expect![[r#"
            plan charge of payment, health-weighted, cached results: 3

            EXECUTOR  ACTION         PRIORITY  HEALTH       BREAKER                              CALLS LEFT
            primary   charge-stripe  100       0.087 of 12  open until 2026-03-01T09:30:00.250Z  100/s 7/h
            fallback  charge-adyen   50        -            -                                    -"#]].assert_eq(&view().text());
    }
}
