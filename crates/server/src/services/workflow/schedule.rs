//! Reads a schedule (W40).

use crate::access::CallContext;
use crate::convert;
use crate::errors::{Refusal, ServerCode};
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_dsl::cron::CronInvalid;
use flotilla_dsl::schedule::Firings;
use flotilla_engine::ids::WorkflowName;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, ScheduleState, ScheduleView};
use flotilla_engine::{Rejection, VersionChoice};
use std::iter;
use tokio::time::Instant;

/// The number of upcoming firings in a response.
const NEXT_COUNT: usize = 5;

/// Serves `GetSchedule`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetScheduleRequest,
    deadline: Instant,
) -> Result<v1::Schedule, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let workflow = request::name("workflow", WorkflowName::new(request.workflow))?;
    let look_up = |reader: &dyn Reader| {
        let latest = VersionChoice::Latest;
        let latest = view::definition_number(reader, &namespace, &workflow, &latest)?;
        Ok((
            latest.is_some(),
            view::schedule(reader, &namespace, &workflow)?,
        ))
    };
    let (is_known, found) = gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    match found {
        Some(view) => {
            let now_ms = gateway.replica().now_ms();
            let next_at_ms = next(&view, now_ms).map_err(|error| {
                Refusal::unavailable(&format!(
                    "expected to compute the schedule's times, but {error}"
                ))
            })?;
            Ok(convert::schedule::message(&workflow, view, next_at_ms))
        }
        None if is_known => {
            let message =
                format!("expected workflow \"{workflow}\" to have a schedule, but it does not");
            Err(Refusal::new(ServerCode::ScheduleNotFound, message))
        }
        None => Err(Rejection::WorkflowNotFound(workflow).into()),
    }
}

/// The next firings of an active schedule. For a schedule that was just enabled, the leader plans
/// the next firing in a moment; this returns what it will be.
fn next(view: &ScheduleView, now_ms: u64) -> Result<Vec<u64>, CronInvalid> {
    if view.state != ScheduleState::Active {
        return Ok(Vec::new());
    }
    let firings = Firings::new(&view.schedule, view.created_at_ms)?;
    let first = view.next_ms.or_else(|| firings.after(now_ms));
    let all = iter::successors(first, |firing| firings.after(*firing));
    Ok(all.take(NEXT_COUNT).collect())
}
