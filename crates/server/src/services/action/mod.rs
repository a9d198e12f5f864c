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
use crate::access::CallContext;
use crate::context::Context;
use crate::deadline::{self, WaitBounds};
use flotilla_api::v1;
use flotilla_api::v1::action_service_server::ActionService;
use flotilla_replica::Caller;
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
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            register::register(&context, request, deadline)
        })
        .await
    }

    async fn get_action(&self, call: Call<v1::GetActionRequest>) -> CallResult<v1::Action> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::get(&context, request, deadline)
        })
        .await
    }

    async fn list_actions(
        &self,
        call: Call<v1::ListActionsRequest>,
    ) -> CallResult<v1::ListActionsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::list(&context, request, deadline)
        })
        .await
    }

    async fn delete_action(
        &self,
        call: Call<v1::DeleteActionRequest>,
    ) -> CallResult<v1::DeleteActionResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::delete(&context, request, deadline)
        })
        .await
    }

    async fn enable_action(
        &self,
        call: Call<v1::EnableActionRequest>,
    ) -> CallResult<v1::EnableActionResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::enable(&context, request, deadline)
        })
        .await
    }

    async fn disable_action(
        &self,
        call: Call<v1::DisableActionRequest>,
    ) -> CallResult<v1::DisableActionResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::disable(&context, request, deadline)
        })
        .await
    }

    async fn invoke_action(
        &self,
        call: Call<v1::InvokeActionRequest>,
    ) -> CallResult<v1::InvokeActionResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            invoke::invoke(&context, request, deadline)
        })
        .await
    }

    async fn get_action_run(
        &self,
        call: Call<v1::GetActionRunRequest>,
    ) -> CallResult<v1::ActionRun> {
        let context = CallContext::of(&self.context, &call).await?;
        // A wait may exceed the default deadline.
        let given = deadline::given(call.metadata());
        serve_call(&context, call, |deadline, request| {
            runs::get(&context, request, WaitBounds { deadline, given })
        })
        .await
    }

    async fn cancel_action_run(
        &self,
        call: Call<v1::CancelActionRunRequest>,
    ) -> CallResult<v1::CancelActionRunResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            runs::cancel(&context, request, deadline)
        })
        .await
    }

    async fn list_action_runs(
        &self,
        call: Call<v1::ListActionRunsRequest>,
    ) -> CallResult<v1::ListActionRunsResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            runs::list(&context, request, deadline)
        })
        .await
    }

    async fn list_dead_letters(
        &self,
        call: Call<v1::ListDeadLettersRequest>,
    ) -> CallResult<v1::ListDeadLettersResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            dead_letters::list(&context, request, deadline)
        })
        .await
    }

    async fn get_dead_letter(
        &self,
        call: Call<v1::GetDeadLetterRequest>,
    ) -> CallResult<v1::DeadLetter> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            dead_letters::get(&context, request, deadline)
        })
        .await
    }

    async fn requeue_dead_letters(
        &self,
        call: Call<v1::RequeueDeadLettersRequest>,
    ) -> CallResult<v1::RequeueDeadLettersResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            dead_letters::requeue(&context, request, deadline)
        })
        .await
    }

    async fn purge_dead_letters(
        &self,
        call: Call<v1::PurgeDeadLettersRequest>,
    ) -> CallResult<v1::PurgeDeadLettersResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            dead_letters::purge(&context, request, deadline)
        })
        .await
    }

    async fn report_task(
        &self,
        call: Call<v1::ReportTaskRequest>,
    ) -> CallResult<v1::ReportTaskResponse> {
        let context = CallContext::of(&self.context, &call).await?;
        let caller = call.extensions().get::<Caller>().cloned();
        let served = serve_call(&context, call, async |deadline, request| {
            let shown = context.keyring.verify_task_token(&request.task_token)?;
            report(&context, shown, request, deadline).await
        });
        let response = served.await?;
        if let Some(caller) = caller {
            caller.mark_admitted();
        }
        Ok(response)
    }
}
