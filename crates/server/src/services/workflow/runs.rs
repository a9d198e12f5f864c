//! Reads runs and their histories (W21–W23).

use super::wait;
use crate::access::CallContext;
use crate::convert;
use crate::deadline::{Wait, WaitBounds};
use crate::errors::{Refusal, ServerCode};
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::Rejection;
use flotilla_engine::ids::{RunId, ScopePathText, StepName, WorkflowName};
use flotilla_engine::store::Reader;
use flotilla_engine::view::{
    self, Condition, Equality, FoundOutput, HistoryRange, RunQuery, StepResultSelector,
};
use tokio::time::Instant;

/// Serves `GetRun`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetRunRequest,
    bounds: WaitBounds,
) -> Result<v1::Run, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let run_id = request::run_id(request.run_id)?;
    let (freshness, deadline) = match request::wait(request.wait_ms)? {
        None => (Freshness::of(request.stale), bounds.deadline),
        Some(length) => {
            let Wait {
                until,
                read_deadline,
            } = bounds.wait(length);
            if !request.stale {
                gateway.catch_up(bounds.deadline).await?;
            }
            wait::until_ended(context, &namespace, &run_id, until).await?;
            // This node has applied what was acknowledged before the call.
            (Freshness::Stale, read_deadline)
        }
    };
    let missing = Rejection::RunNotFound(run_id.clone());
    let look_up = move |reader: &dyn Reader| view::run(reader, &namespace, &run_id);
    let found = gateway.scan(freshness, deadline, look_up).await?;
    Ok(convert::run::message(found.ok_or(missing)?))
}

/// Serves `GetStepOutput`.
pub(super) async fn step_output(
    context: &CallContext,
    request: v1::GetStepOutputRequest,
    deadline: Instant,
) -> Result<v1::GetStepOutputResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let run_id = request::run_id(request.run_id)?;
    let selector = StepResultSelector {
        step: request::name("step", StepName::new(request.step))?,
        scope: request::optional("scope", request.scope, ScopePathText::new)?,
        visit: request.visit,
    };
    let no_run = Rejection::RunNotFound(run_id.clone());
    let no_result = missing_result(&run_id, &selector);
    let look_up =
        move |reader: &dyn Reader| view::step_output(reader, &namespace, &run_id, &selector);
    let freshness = Freshness::of(request.stale);
    match gateway.scan(freshness, deadline, look_up).await? {
        FoundOutput::NoRun => Err(no_run.into()),
        FoundOutput::NoResult => Err(no_result),
        FoundOutput::Found(found) => Ok(v1::GetStepOutputResponse {
            visit: found.visit,
            outcome: found.outcome.to_string(),
            output: found.output.as_ref().map(convert::json),
        }),
    }
}

fn missing_result(run_id: &RunId, selector: &StepResultSelector) -> Refusal {
    let StepResultSelector { step, scope, visit } = selector;
    let visit = visit.map_or(String::new(), |visit| format!("visit {visit} to "));
    let scope = scope.as_ref();
    let scope = scope.map_or(String::new(), |scope| format!(" in scope \"{scope}\""));
    let message = format!(
        "expected that run \"{run_id}\" has left {visit}step \"{step}\"{scope}, but it keeps no \
         such result"
    );
    Refusal::new(ServerCode::StepResultNotFound, message)
        .with_hint("`flo workflow report RUN` lists the visits to the steps")
}

/// Serves `ListRuns`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListRunsRequest,
    deadline: Instant,
) -> Result<v1::ListRunsResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let page = request::page(request.limit, &request.page_token)?;
    let freshness = Freshness::of(request.stale);
    let is_first = request.page_token.is_empty();
    let query = query(request)?;
    let list = move |reader: &dyn Reader| {
        let found = view::runs(reader, &namespace, &query, page.range())?;
        let is_nothing_found = is_first && found.items.is_empty() && found.next.is_none();
        let unknown = if is_nothing_found {
            view::unknown_attributes(reader, &namespace, &query)?
        } else {
            Vec::new()
        };
        Ok((found, unknown))
    };
    let (found, unknown) = gateway.scan(freshness, deadline, list).await?;
    Ok(v1::ListRunsResponse {
        items: found.items.into_iter().map(convert::run::row).collect(),
        next_page_token: request::page_token(found.next),
        unknown_attributes: unknown.iter().map(ToString::to_string).collect(),
    })
}

/// Serves `GetHistory`.
pub(super) async fn history(
    context: &CallContext,
    request: v1::GetHistoryRequest,
    deadline: Instant,
) -> Result<v1::GetHistoryResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let run_id = request::run_id(request.run_id)?;
    let range = HistoryRange {
        after_seq: request.after_seq,
        limit: request::rows_max(request.limit)?,
    };
    let missing = Rejection::RunNotFound(run_id.clone());
    let list = move |reader: &dyn Reader| view::history(reader, &namespace, &run_id, range);
    let found = gateway
        .scan(Freshness::of(request.stale), deadline, list)
        .await?;
    let page = found.ok_or(missing)?;
    Ok(v1::GetHistoryResponse {
        events: page
            .events
            .into_iter()
            .map(convert::event::message)
            .collect(),
        has_more: page.has_more,
    })
}

/// The conditions on a list's rows: those of the expression, and those of the two fields.
fn query(request: v1::ListRunsRequest) -> Result<RunQuery, Refusal> {
    let mut query = flotilla_dsl::query::parse(&request.r#where).map_err(|invalid| {
        let message = invalid.render(&request.r#where).trim_end().to_owned();
        Refusal::new(ServerCode::WhereInvalid, message).at("where")
    })?;
    let status = convert::run::wanted_status(request.status());
    let status = status.map(|status| Condition::Status(Equality::Equal, status));
    let workflow = request::optional("workflow", request.workflow, WorkflowName::new)?;
    let workflow = workflow.map(|name| Condition::Workflow(Equality::Equal, name));
    query.conditions.extend(status.into_iter().chain(workflow));
    Ok(query)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::RunStatus;

    fn request(condition: &str) -> v1::ListRunsRequest {
        v1::ListRunsRequest {
            status: v1::RunStatus::Waiting.into(),
            workflow: "order".to_owned(),
            r#where: condition.to_owned(),
            ..Default::default()
        }
    }

    #[test]
    fn the_two_fields_are_conditions_beside_those_that_are_written() {
        let conditions = query(request("started_at > 5")).unwrap().conditions;
        assert_eq!(conditions.len(), 3);
        assert!(conditions.contains(&Condition::Status(Equality::Equal, RunStatus::Waiting)));
        let order = WorkflowName::new("order").unwrap();
        assert!(conditions.contains(&Condition::Workflow(Equality::Equal, order)));
    }

    #[test]
    fn a_mistake_is_shown_where_it_stands() {
        let refusal = query(request("total > 5 or total < 2"))
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains("\n  total > 5 or total < 2\n            ^^"),
            "{refusal}"
        );
        assert!(refusal.ends_with("(where_invalid)"), "{refusal}");
    }
}
