//! The action service: one file per family of calls.

mod dead_letters;
mod invoke;
mod register;
mod registry;
mod report;
mod runs;
mod wait;

pub(crate) use report::report;

use super::serve_call;
use crate::context::Context;
use crate::deadline::{self, WaitBounds};
use flotilla_api::v1;
use flotilla_api::v1::action_service_server::ActionService;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The action service of this node.
pub(crate) struct Actions {
    context: Arc<Context>,
}

impl Actions {
    /// The service over the node's shared context.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<RequestBody> = Request<RequestBody>;
type CallResult<ResponseBody> = Result<Response<ResponseBody>, Status>;

#[tonic::async_trait]
impl ActionService for Actions {
    async fn register_action(
        &self,
        call: Call<v1::RegisterActionRequest>,
    ) -> CallResult<v1::RegisterActionResponse> {
        serve_call(call, |deadline, request| {
            register::register(&self.context, request, deadline)
        })
        .await
    }

    async fn get_action(&self, call: Call<v1::GetActionRequest>) -> CallResult<v1::Action> {
        serve_call(call, |deadline, request| {
            registry::get(&self.context, request, deadline)
        })
        .await
    }

    async fn list_actions(
        &self,
        call: Call<v1::ListActionsRequest>,
    ) -> CallResult<v1::ListActionsResponse> {
        serve_call(call, |deadline, request| {
            registry::list(&self.context, request, deadline)
        })
        .await
    }

    async fn delete_action(
        &self,
        call: Call<v1::DeleteActionRequest>,
    ) -> CallResult<v1::DeleteActionResponse> {
        serve_call(call, |deadline, request| {
            registry::delete(&self.context, request, deadline)
        })
        .await
    }

    async fn enable_action(
        &self,
        call: Call<v1::EnableActionRequest>,
    ) -> CallResult<v1::EnableActionResponse> {
        serve_call(call, |deadline, request| {
            registry::enable(&self.context, request, deadline)
        })
        .await
    }

    async fn disable_action(
        &self,
        call: Call<v1::DisableActionRequest>,
    ) -> CallResult<v1::DisableActionResponse> {
        serve_call(call, |deadline, request| {
            registry::disable(&self.context, request, deadline)
        })
        .await
    }

    async fn invoke_action(
        &self,
        call: Call<v1::InvokeActionRequest>,
    ) -> CallResult<v1::InvokeActionResponse> {
        serve_call(call, |deadline, request| {
            invoke::invoke(&self.context, request, deadline)
        })
        .await
    }

    async fn get_action_run(
        &self,
        call: Call<v1::GetActionRunRequest>,
    ) -> CallResult<v1::ActionRun> {
        // A wait may exceed the default deadline.
        let given = deadline::given(call.metadata());
        serve_call(call, |deadline, request| {
            runs::get(&self.context, request, WaitBounds { deadline, given })
        })
        .await
    }

    async fn cancel_action_run(
        &self,
        call: Call<v1::CancelActionRunRequest>,
    ) -> CallResult<v1::CancelActionRunResponse> {
        serve_call(call, |deadline, request| {
            runs::cancel(&self.context, request, deadline)
        })
        .await
    }

    async fn list_action_runs(
        &self,
        call: Call<v1::ListActionRunsRequest>,
    ) -> CallResult<v1::ListActionRunsResponse> {
        serve_call(call, |deadline, request| {
            runs::list(&self.context, request, deadline)
        })
        .await
    }

    async fn list_dead_letters(
        &self,
        call: Call<v1::ListDeadLettersRequest>,
    ) -> CallResult<v1::ListDeadLettersResponse> {
        serve_call(call, |deadline, request| {
            dead_letters::list(&self.context, request, deadline)
        })
        .await
    }

    async fn get_dead_letter(
        &self,
        call: Call<v1::GetDeadLetterRequest>,
    ) -> CallResult<v1::DeadLetter> {
        serve_call(call, |deadline, request| {
            dead_letters::get(&self.context, request, deadline)
        })
        .await
    }

    async fn requeue_dead_letters(
        &self,
        call: Call<v1::RequeueDeadLettersRequest>,
    ) -> CallResult<v1::RequeueDeadLettersResponse> {
        serve_call(call, |deadline, request| {
            dead_letters::requeue(&self.context, request, deadline)
        })
        .await
    }

    async fn purge_dead_letters(
        &self,
        call: Call<v1::PurgeDeadLettersRequest>,
    ) -> CallResult<v1::PurgeDeadLettersResponse> {
        serve_call(call, |deadline, request| {
            dead_letters::purge(&self.context, request, deadline)
        })
        .await
    }

    async fn report_task(
        &self,
        call: Call<v1::ReportTaskRequest>,
    ) -> CallResult<v1::ReportTaskResponse> {
        serve_call(call, |deadline, request| {
            report(&self.context, request, deadline)
        })
        .await
    }
}
