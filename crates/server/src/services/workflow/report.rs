//! Reads reports of runs (W87).

use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::Rejection;
use flotilla_engine::store::Reader;
use flotilla_engine::view::{self, FoundReport};
use tokio::time::Instant;

/// Serves `GetRunReport`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetRunReportRequest,
    deadline: Instant,
) -> Result<v1::GetRunReportResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let run_id = request::run_id(request.run_id)?;
    let page = request::page(request.limit, &request.page_token)?;
    let missing = Rejection::RunNotFound(run_id.clone());
    let look_up =
        move |reader: &dyn Reader| view::report(reader, &namespace, &run_id, page.range());
    let found = gateway
        .scan(Freshness::of(request.stale), deadline, look_up)
        .await?;
    let report = match found {
        FoundReport::NoRun => return Err(missing.into()),
        FoundReport::OtherToken => return Err(request::other_token()),
        FoundReport::Page(page) => page,
    };
    Ok(v1::GetRunReportResponse {
        run: report.run.map(|run| convert::run::message(*run)),
        steps: report
            .steps
            .into_iter()
            .map(convert::report::step)
            .collect(),
        next_page_token: request::page_token(report.next),
        incomplete: report.is_incomplete,
        usage: report.usage.as_ref().map(convert::report::usage),
    })
}
