//! A schedule fires once for each of its times.

use super::calls::{define, events, found_in, runs};
use super::{Session, Workload};
use crate::checker::{Violation, evenly_spaced};
use crate::history::History;
use flotilla_client::{ClientError, v1};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt};
use rand::rngs::StdRng;
use serde_json::{Value, json};
use std::time::Duration;

const WORKFLOW: &str = "chaos-schedule";
/// As in the definition.
const INTERVAL_MS: u64 = 500;
const DEFINITION: &str = "kind: Workflow
name: chaos-schedule
version: \"1.0.0\"
schedule: {interval: 500, max_concurrent: 1000000, catchup_window_ms: 3600000}
start:
  waitForSignal: {type: never, timeoutMs: 10, onTimeout: flo.TimedOut}
  transitions: {success: flo.Completed}
";

/// A schedule.
#[derive(Debug)]
pub(super) struct Schedules;

impl Workload for Schedules {
    fn name(&self) -> &'static str {
        "schedules"
    }

    fn prepare(&self, flo: &Flo) {
        define(flo, DEFINITION);
    }

    fn processes(&self) -> u64 {
        1
    }

    fn step<'a>(&'a self, session: &'a Session, _random: &'a mut StdRng) -> BoxFuture<'a, ()> {
        async move {
            let call = session.client.get_schedule(v1::GetScheduleRequest {
                workflow: WORKFLOW.to_owned(),
                ..v1::GetScheduleRequest::default()
            });
            let show = |schedule: &v1::Schedule| json!({"fired": schedule.fired_count});
            // It fires by itself; this read is for the timeline.
            let _ = session.call("look", Value::Null, call, show).await;
            session.rest(Duration::from_millis(INTERVAL_MS)).await;
        }
        .boxed()
    }

    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>> {
        async move {
            // From here on the schedule is paused, so that its runs can be counted.
            let disable = v1::DisableWorkflowRequest {
                name: WORKFLOW.to_owned(),
                ..v1::DisableWorkflowRequest::default()
            };
            session.client.disable_workflow(disable).await?;
            let mut times = Vec::new();
            for row in runs(&session.client, WORKFLOW).await? {
                let events = events(&session.client, &row.run_id).await?;
                let told = events.iter().filter_map(firing);
                times.extend(told);
            }
            Ok(json!(times))
        }
        .boxed()
    }

    fn check(&self, history: &History) -> Vec<Violation> {
        let times: Vec<u64> = found_in(history, self.name());
        if times.len() < 2 {
            return vec![Violation::new(format!(
                "the schedule fired only at {times:?}"
            ))];
        }
        evenly_spaced("the schedule", &times, INTERVAL_MS)
    }
}

fn firing(event: &v1::Event) -> Option<u64> {
    let told: Value = serde_json::from_slice(&event.attributes).ok()?;
    told["scheduled_at_ms"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_firing_that_is_missing_or_double_is_found() {
        let history = |times: Value| History {
            final_reads: BTreeMap::from([("schedules".to_owned(), times)]),
            ..History::default()
        };
        assert_eq!(Schedules.check(&history(json!([1_000, 500, 1_500]))), []);
        assert_eq!(Schedules.check(&history(json!([500, 1_500]))).len(), 1);
        assert_eq!(Schedules.check(&history(json!([500, 500, 1_000]))).len(), 1);
        assert_eq!(Schedules.check(&history(json!([]))).len(), 1);
    }
}
