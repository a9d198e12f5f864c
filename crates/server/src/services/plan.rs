//! The plan service (W31): what is remembered of a plan's executors, shown and reset.

use super::{Sought, answer};
use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_api::v1::plan_service_server::PlanService;
use flotilla_engine::ids::{ExecutorName, PlanName, WorkflowName};
use flotilla_engine::store::Reader;
use flotilla_engine::{Command, Rejection, ResetPlan, reply, view};
use std::sync::Arc;
use tokio::time::Instant;
use tonic::{Request, Response, Status};

/// The plan service of this node.
pub(crate) struct Plans {
    context: Arc<Context>,
}

impl Plans {
    /// The service over what the node shares.
    pub(crate) fn new(context: Arc<Context>) -> Self {
        Self { context }
    }
}

#[tonic::async_trait]
impl PlanService for Plans {
    async fn get_plan(
        &self,
        call: Request<v1::GetPlanRequest>,
    ) -> Result<Response<v1::PlanStatus>, Status> {
        answer(call, |deadline, asked| get(&self.context, asked, deadline)).await
    }

    async fn reset_plan(
        &self,
        call: Request<v1::ResetPlanRequest>,
    ) -> Result<Response<v1::ResetPlanResponse>, Status> {
        answer(call, |deadline, asked| {
            reset(&self.context, asked, deadline)
        })
        .await
    }
}

async fn get(
    context: &Context,
    asked: v1::GetPlanRequest,
    deadline: Instant,
) -> Result<v1::PlanStatus, Refusal> {
    let namespace = request::namespace(&asked.namespace)?;
    let workflow = request::name(WorkflowName::new(asked.workflow))?;
    let plan = request::name(PlanName::new(asked.plan))?;
    let now_ms = context.gateway.replica().now_ms();
    let look_up = |reader: &dyn Reader| {
        let found = view::plan(reader, (&namespace, &workflow, &plan), now_ms)?;
        Sought::new(found, reader, (&namespace, &workflow))
    };
    match context
        .gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?
    {
        Sought::Found(view) => Ok(convert::plan::message(&workflow, view)),
        Sought::PartMissing => Err(Rejection::PlanNotFound { workflow, plan }.into()),
        Sought::WorkflowMissing => Err(Rejection::WorkflowNotFound(workflow).into()),
    }
}

async fn reset(
    context: &Context,
    asked: v1::ResetPlanRequest,
    deadline: Instant,
) -> Result<v1::ResetPlanResponse, Refusal> {
    let body = ResetPlan {
        workflow: request::name(WorkflowName::new(asked.workflow))?,
        plan: request::name(PlanName::new(asked.plan))?,
        executor: request::optional(asked.executor, ExecutorName::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&asked.request_id)?),
        namespace: request::namespace(&asked.namespace)?,
        body,
    };
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::ResetPlanResponse {})
}
