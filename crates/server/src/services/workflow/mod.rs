//! The workflow service: one file per family of calls.

mod cache;
mod create;
mod definitions;
mod delete;
mod info;
mod open_runs;
mod report;
mod retry;
mod runs;
mod schedule;
mod start;
mod validate;
mod wait;
mod watch;

use super::{serve_call, serve_stream};
use crate::context::Context;
use crate::sending::CountedStream;
use crate::traces::CallTrace;
use flotilla_api::v1;
use flotilla_api::v1::workflow_service_server::WorkflowService;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The workflow service of this node.
pub(crate) struct Workflows {
    context: Arc<Context>,
}

impl Workflows {
    /// The service over the node's shared context.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<RequestBody> = Request<RequestBody>;
type CallResult<ResponseBody> = Result<Response<ResponseBody>, Status>;

#[tonic::async_trait]
impl WorkflowService for Workflows {
    type WatchRunStream = CountedStream<Result<v1::WatchRunResponse, Status>>;

    async fn create_workflow(
        &self,
        call: Call<v1::CreateWorkflowRequest>,
    ) -> CallResult<v1::CreateWorkflowResponse> {
        serve_call(call, |deadline, request| {
            create::create(&self.context, request, deadline)
        })
        .await
    }

    async fn validate_workflow(
        &self,
        call: Call<v1::ValidateWorkflowRequest>,
    ) -> CallResult<v1::ValidateWorkflowResponse> {
        serve_call(call, |deadline, request| {
            validate::validate(&self.context, request, deadline)
        })
        .await
    }

    async fn get_workflow(&self, call: Call<v1::GetWorkflowRequest>) -> CallResult<v1::Workflow> {
        serve_call(call, |deadline, request| {
            definitions::get(&self.context, request, deadline)
        })
        .await
    }

    async fn list_workflows(
        &self,
        call: Call<v1::ListWorkflowsRequest>,
    ) -> CallResult<v1::ListWorkflowsResponse> {
        serve_call(call, |deadline, request| {
            definitions::list(&self.context, request, deadline)
        })
        .await
    }

    async fn list_revisions(
        &self,
        call: Call<v1::ListRevisionsRequest>,
    ) -> CallResult<v1::ListRevisionsResponse> {
        serve_call(call, |deadline, request| {
            definitions::revisions(&self.context, request, deadline)
        })
        .await
    }

    async fn enable_workflow(
        &self,
        call: Call<v1::EnableWorkflowRequest>,
    ) -> CallResult<v1::EnableWorkflowResponse> {
        serve_call(call, |deadline, request| {
            definitions::enable(&self.context, request, deadline)
        })
        .await
    }

    async fn disable_workflow(
        &self,
        call: Call<v1::DisableWorkflowRequest>,
    ) -> CallResult<v1::DisableWorkflowResponse> {
        serve_call(call, |deadline, request| {
            definitions::disable(&self.context, request, deadline)
        })
        .await
    }

    async fn start_run(&self, call: Call<v1::StartRunRequest>) -> CallResult<v1::StartRunResponse> {
        let trace = CallTrace::of(&call);
        serve_call(call, |deadline, request| {
            start::start(self, request, trace, deadline)
        })
        .await
    }

    async fn get_run(&self, call: Call<v1::GetRunRequest>) -> CallResult<v1::Run> {
        serve_call(call, |deadline, request| {
            runs::get(&self.context, request, deadline)
        })
        .await
    }

    async fn get_step_output(
        &self,
        call: Call<v1::GetStepOutputRequest>,
    ) -> CallResult<v1::GetStepOutputResponse> {
        serve_call(call, |deadline, request| {
            runs::step_output(&self.context, request, deadline)
        })
        .await
    }

    async fn list_runs(&self, call: Call<v1::ListRunsRequest>) -> CallResult<v1::ListRunsResponse> {
        serve_call(call, |deadline, request| {
            runs::list(&self.context, request, deadline)
        })
        .await
    }

    async fn get_history(
        &self,
        call: Call<v1::GetHistoryRequest>,
    ) -> CallResult<v1::GetHistoryResponse> {
        serve_call(call, |deadline, request| {
            runs::history(&self.context, request, deadline)
        })
        .await
    }

    async fn watch_run(&self, call: Call<v1::WatchRunRequest>) -> CallResult<Self::WatchRunStream> {
        serve_stream(call, |deadline, request, memory| {
            watch::watch(&self.context, request, (deadline, memory))
        })
        .await
    }

    async fn signal_run(
        &self,
        call: Call<v1::SignalRunRequest>,
    ) -> CallResult<v1::SignalRunResponse> {
        serve_call(call, |deadline, request| {
            open_runs::signal(&self.context, request, deadline)
        })
        .await
    }

    async fn add_info(&self, call: Call<v1::AddInfoRequest>) -> CallResult<v1::AddInfoResponse> {
        serve_call(call, |deadline, request| {
            info::add(&self.context, request, deadline)
        })
        .await
    }

    async fn list_info(&self, call: Call<v1::ListInfoRequest>) -> CallResult<v1::ListInfoResponse> {
        serve_call(call, |deadline, request| {
            info::list(&self.context, request, deadline)
        })
        .await
    }

    async fn get_run_report(
        &self,
        call: Call<v1::GetRunReportRequest>,
    ) -> CallResult<v1::GetRunReportResponse> {
        serve_call(call, |deadline, request| {
            report::get(&self.context, request, deadline)
        })
        .await
    }

    async fn decide_approval(
        &self,
        call: Call<v1::DecideApprovalRequest>,
    ) -> CallResult<v1::DecideApprovalResponse> {
        serve_call(call, |deadline, request| {
            open_runs::decide_approval(&self.context, request, deadline)
        })
        .await
    }

    async fn complete_step(
        &self,
        call: Call<v1::CompleteStepRequest>,
    ) -> CallResult<v1::CompleteStepResponse> {
        serve_call(call, |deadline, request| {
            open_runs::complete_step(&self.context, request, deadline)
        })
        .await
    }

    async fn cancel_run(
        &self,
        call: Call<v1::CancelRunRequest>,
    ) -> CallResult<v1::CancelRunResponse> {
        serve_call(call, |deadline, request| {
            open_runs::cancel(&self.context, request, deadline)
        })
        .await
    }

    async fn resume_run(
        &self,
        call: Call<v1::ResumeRunRequest>,
    ) -> CallResult<v1::ResumeRunResponse> {
        serve_call(call, |deadline, request| {
            open_runs::resume(&self.context, request, deadline)
        })
        .await
    }

    async fn retry_run(&self, call: Call<v1::RetryRunRequest>) -> CallResult<v1::StartRunResponse> {
        let trace = CallTrace::of(&call);
        serve_call(call, |deadline, request| {
            retry::retry(self, request, trace, deadline)
        })
        .await
    }

    async fn get_schedule(&self, call: Call<v1::GetScheduleRequest>) -> CallResult<v1::Schedule> {
        serve_call(call, |deadline, request| {
            schedule::get(&self.context, request, deadline)
        })
        .await
    }

    async fn invalidate_cache(
        &self,
        call: Call<v1::InvalidateCacheRequest>,
    ) -> CallResult<v1::InvalidateCacheResponse> {
        serve_call(call, |deadline, request| {
            cache::invalidate(&self.context, request, deadline)
        })
        .await
    }

    async fn delete_workflow(
        &self,
        call: Call<v1::DeleteWorkflowRequest>,
    ) -> CallResult<v1::DeleteWorkflowResponse> {
        serve_call(call, |deadline, request| {
            delete::delete(&self.context, request, deadline)
        })
        .await
    }
}
