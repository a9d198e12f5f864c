//! The plan service (W31): shows and resets the state of a plan's executors.

use super::{Lookup, serve_call};
use crate::access::CallContext;
use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_api::v1::plan_service_server::PlanService;
use flotilla_engine::ids::{ExecutorName, PlanName, PlanRef, WorkflowName};
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
    /// The service over the node's shared context.
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
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            get(&context, request, deadline)
        })
        .await
    }

    async fn reset_plan(
        &self,
        call: Request<v1::ResetPlanRequest>,
    ) -> Result<Response<v1::ResetPlanResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            reset(&context, request, deadline)
        })
        .await
    }
}

async fn get(
    context: &CallContext,
    request: v1::GetPlanRequest,
    deadline: Instant,
) -> Result<v1::PlanStatus, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let name = PlanRef {
        workflow: request::name("workflow", WorkflowName::new(request.workflow))?,
        plan: request::name("plan", PlanName::new(request.plan))?,
    };
    let now_ms = gateway.replica().now_ms();
    let look_up = |reader: &dyn Reader| {
        let found = view::plan(reader, &namespace, &name, now_ms)?;
        Lookup::new(found, reader, &namespace, &name.workflow)
    };
    match gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?
    {
        Lookup::Found(view) => Ok(convert::plan::message(&name.workflow, view)),
        Lookup::PartMissing => {
            let PlanRef { workflow, plan } = name;
            Err(Rejection::PlanNotFound { workflow, plan }.into())
        }
        Lookup::WorkflowMissing => Err(Rejection::WorkflowNotFound(name.workflow).into()),
    }
}

async fn reset(
    context: &CallContext,
    request: v1::ResetPlanRequest,
    deadline: Instant,
) -> Result<v1::ResetPlanResponse, Refusal> {
    let body = ResetPlan {
        workflow: request::name("workflow", WorkflowName::new(request.workflow))?,
        plan: request::name("plan", PlanName::new(request.plan))?,
        executor: request::optional("executor", request.executor, ExecutorName::new)?,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body,
    };
    let reply::Done {} = context.gateway.submit(command, deadline).await?;
    Ok(v1::ResetPlanResponse {})
}
