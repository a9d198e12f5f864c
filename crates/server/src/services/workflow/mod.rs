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
use crate::access::CallContext;
use crate::context::Context;
use crate::deadline::{self, WaitBounds};
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
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            create::create(&context, request, deadline)
        })
        .await
    }

    async fn validate_workflow(
        &self,
        call: Call<v1::ValidateWorkflowRequest>,
    ) -> CallResult<v1::ValidateWorkflowResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            validate::validate(&context, request, deadline)
        })
        .await
    }

    async fn get_workflow(&self, call: Call<v1::GetWorkflowRequest>) -> CallResult<v1::Workflow> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            definitions::get(&context, request, deadline)
        })
        .await
    }

    async fn list_workflows(
        &self,
        call: Call<v1::ListWorkflowsRequest>,
    ) -> CallResult<v1::ListWorkflowsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            definitions::list(&context, request, deadline)
        })
        .await
    }

    async fn list_revisions(
        &self,
        call: Call<v1::ListRevisionsRequest>,
    ) -> CallResult<v1::ListRevisionsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            definitions::revisions(&context, request, deadline)
        })
        .await
    }

    async fn enable_workflow(
        &self,
        call: Call<v1::EnableWorkflowRequest>,
    ) -> CallResult<v1::EnableWorkflowResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            definitions::enable(&context, request, deadline)
        })
        .await
    }

    async fn disable_workflow(
        &self,
        call: Call<v1::DisableWorkflowRequest>,
    ) -> CallResult<v1::DisableWorkflowResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            definitions::disable(&context, request, deadline)
        })
        .await
    }

    async fn start_run(&self, call: Call<v1::StartRunRequest>) -> CallResult<v1::StartRunResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        let trace = CallTrace::of(&call);
        serve_call(&context, call, |deadline, request| {
            start::start(&context, request, trace, deadline)
        })
        .await
    }

    async fn get_run(&self, call: Call<v1::GetRunRequest>) -> CallResult<v1::Run> {
        let context = CallContext::of(&self.context, &call).await?;
        // A wait may exceed the default deadline.
        let given = deadline::given(call.metadata());
        serve_call(&context, call, |deadline, request| {
            runs::get(&context, request, WaitBounds { deadline, given })
        })
        .await
    }

    async fn get_step_output(
        &self,
        call: Call<v1::GetStepOutputRequest>,
    ) -> CallResult<v1::GetStepOutputResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            runs::step_output(&context, request, deadline)
        })
        .await
    }

    async fn list_runs(&self, call: Call<v1::ListRunsRequest>) -> CallResult<v1::ListRunsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            runs::list(&context, request, deadline)
        })
        .await
    }

    async fn get_history(
        &self,
        call: Call<v1::GetHistoryRequest>,
    ) -> CallResult<v1::GetHistoryResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            runs::history(&context, request, deadline)
        })
        .await
    }

    async fn watch_run(&self, call: Call<v1::WatchRunRequest>) -> CallResult<Self::WatchRunStream> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_stream(call, |deadline, request, memory| {
            watch::watch(&context, request, (deadline, memory))
        })
        .await
    }

    async fn signal_run(
        &self,
        call: Call<v1::SignalRunRequest>,
    ) -> CallResult<v1::SignalRunResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            open_runs::signal(&context, request, deadline)
        })
        .await
    }

    async fn add_info(&self, call: Call<v1::AddInfoRequest>) -> CallResult<v1::AddInfoResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            info::add(&context, request, deadline)
        })
        .await
    }

    async fn list_info(&self, call: Call<v1::ListInfoRequest>) -> CallResult<v1::ListInfoResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            info::list(&context, request, deadline)
        })
        .await
    }

    async fn get_run_report(
        &self,
        call: Call<v1::GetRunReportRequest>,
    ) -> CallResult<v1::GetRunReportResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            report::get(&context, request, deadline)
        })
        .await
    }

    async fn decide_approval(
        &self,
        call: Call<v1::DecideApprovalRequest>,
    ) -> CallResult<v1::DecideApprovalResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            open_runs::decide_approval(&context, request, deadline)
        })
        .await
    }

    async fn complete_step(
        &self,
        call: Call<v1::CompleteStepRequest>,
    ) -> CallResult<v1::CompleteStepResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            open_runs::complete_step(&context, request, deadline)
        })
        .await
    }

    async fn cancel_run(
        &self,
        call: Call<v1::CancelRunRequest>,
    ) -> CallResult<v1::CancelRunResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            open_runs::cancel(&context, request, deadline)
        })
        .await
    }

    async fn resume_run(
        &self,
        call: Call<v1::ResumeRunRequest>,
    ) -> CallResult<v1::ResumeRunResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            open_runs::resume(&context, request, deadline)
        })
        .await
    }

    async fn retry_run(&self, call: Call<v1::RetryRunRequest>) -> CallResult<v1::StartRunResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        let trace = CallTrace::of(&call);
        serve_call(&context, call, |deadline, request| {
            retry::retry(&context, request, trace, deadline)
        })
        .await
    }

    async fn get_schedule(&self, call: Call<v1::GetScheduleRequest>) -> CallResult<v1::Schedule> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            schedule::get(&context, request, deadline)
        })
        .await
    }

    async fn invalidate_cache(
        &self,
        call: Call<v1::InvalidateCacheRequest>,
    ) -> CallResult<v1::InvalidateCacheResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            cache::invalidate(&context, request, deadline)
        })
        .await
    }

    async fn delete_workflow(
        &self,
        call: Call<v1::DeleteWorkflowRequest>,
    ) -> CallResult<v1::DeleteWorkflowResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            delete::delete(&context, request, deadline)
        })
        .await
    }
}
