//! The action service: one file per family of calls.

mod dead_letters;
mod invoke;
mod register;
mod registry;
mod report;
mod runs;
mod wait;

pub(crate) use report::report;

use super::answer;
use crate::context::Context;
use crate::deadline;
use flotilla_api::v1;
use flotilla_api::v1::action_service_server::ActionService;
use std::sync::Arc;
use tonic::{Request, Response, Status};

/// The action service of this node.
pub(crate) struct Actions {
    context: Arc<Context>,
}

impl Actions {
    /// The service over what the node shares.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

type Call<Asked> = Request<Asked>;
type Answer<Answered> = Result<Response<Answered>, Status>;

#[tonic::async_trait]
impl ActionService for Actions {
    async fn register_action(
        &self,
        call: Call<v1::RegisterActionRequest>,
    ) -> Answer<v1::RegisterActionResponse> {
        answer(call, |deadline, asked| {
            register::register(&self.context, asked, deadline)
        })
        .await
    }

    async fn get_action(&self, call: Call<v1::GetActionRequest>) -> Answer<v1::Action> {
        answer(call, |deadline, asked| {
            registry::get(&self.context, asked, deadline)
        })
        .await
    }

    async fn list_actions(
        &self,
        call: Call<v1::ListActionsRequest>,
    ) -> Answer<v1::ListActionsResponse> {
        answer(call, |deadline, asked| {
            registry::list(&self.context, asked, deadline)
        })
        .await
    }

    async fn delete_action(
        &self,
        call: Call<v1::DeleteActionRequest>,
    ) -> Answer<v1::DeleteActionResponse> {
        answer(call, |deadline, asked| {
            registry::delete(&self.context, asked, deadline)
        })
        .await
    }

    async fn enable_action(
        &self,
        call: Call<v1::EnableActionRequest>,
    ) -> Answer<v1::EnableActionResponse> {
        answer(call, |deadline, asked| {
            registry::enable(&self.context, asked, deadline)
        })
        .await
    }

    async fn disable_action(
        &self,
        call: Call<v1::DisableActionRequest>,
    ) -> Answer<v1::DisableActionResponse> {
        answer(call, |deadline, asked| {
            registry::disable(&self.context, asked, deadline)
        })
        .await
    }

    async fn invoke_action(
        &self,
        call: Call<v1::InvokeActionRequest>,
    ) -> Answer<v1::InvokeActionResponse> {
        answer(call, |deadline, asked| {
            invoke::invoke(&self.context, asked, deadline)
        })
        .await
    }

    async fn get_action_run(&self, call: Call<v1::GetActionRunRequest>) -> Answer<v1::ActionRun> {
        // A wait may be longer than the deadline that is assumed when none is given.
        let given = deadline::given(call.metadata());
        answer(call, |deadline, asked| {
            runs::get(&self.context, asked, runs::Patience { deadline, given })
        })
        .await
    }

    async fn list_action_runs(
        &self,
        call: Call<v1::ListActionRunsRequest>,
    ) -> Answer<v1::ListActionRunsResponse> {
        answer(call, |deadline, asked| {
            runs::list(&self.context, asked, deadline)
        })
        .await
    }

    async fn list_dead_letters(
        &self,
        call: Call<v1::ListDeadLettersRequest>,
    ) -> Answer<v1::ListDeadLettersResponse> {
        answer(call, |deadline, asked| {
            dead_letters::list(&self.context, asked, deadline)
        })
        .await
    }

    async fn get_dead_letter(
        &self,
        call: Call<v1::GetDeadLetterRequest>,
    ) -> Answer<v1::DeadLetter> {
        answer(call, |deadline, asked| {
            dead_letters::get(&self.context, asked, deadline)
        })
        .await
    }

    async fn requeue_dead_letters(
        &self,
        call: Call<v1::RequeueDeadLettersRequest>,
    ) -> Answer<v1::RequeueDeadLettersResponse> {
        answer(call, |deadline, asked| {
            dead_letters::requeue(&self.context, asked, deadline)
        })
        .await
    }

    async fn purge_dead_letters(
        &self,
        call: Call<v1::PurgeDeadLettersRequest>,
    ) -> Answer<v1::PurgeDeadLettersResponse> {
        answer(call, |deadline, asked| {
            dead_letters::purge(&self.context, asked, deadline)
        })
        .await
    }

    async fn report_task(
        &self,
        call: Call<v1::ReportTaskRequest>,
    ) -> Answer<v1::ReportTaskResponse> {
        answer(call, |deadline, asked| {
            report(&self.context, asked, deadline)
        })
        .await
    }
}
