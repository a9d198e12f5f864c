//! The worker service (A20–A22).

use super::forward;
use super::long_poll::{self, wait_of};
use super::registry;
use super::reports::{self, acceptance_body, completion_body, failure_body, token, touch_body};
use super::session::{Connection, Incoming, Outgoing};
use crate::access::CallContext;
use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::{AWAIT_RESERVE, TERM_BEGIN_MAX};
use crate::members::ForwardedActor;
use crate::receiving::ArrivedMessages;
use crate::request;
use crate::sending::ResponseMemory;
use crate::services::serve_call;
use crate::watch::interrupted;
use flotilla_api::v1;
use flotilla_api::v1::worker_service_server::WorkerService;
use flotilla_engine::{AddTaskInfo, Command, reply};
use flotilla_leader::Hub;
use std::sync::Arc;
use tokio::time::{Instant, timeout};
use tonic::{Request, Response, Status, Streaming};

/// The worker service of this node.
pub(crate) struct Workers {
    context: Arc<Context>,
    hub: Arc<Hub>,
}

impl Workers {
    /// The service over the node's open polls.
    pub(crate) fn new(context: Arc<Context>, hub: Arc<Hub>) -> Self {
        Self { context, hub }
    }

    /// Waits for tasks, at the leader.
    async fn await_tasks(
        &self,
        context: &CallContext,
        request: v1::AwaitRequest,
        is_forwarded: bool,
    ) -> Result<v1::AwaitResponse, Status> {
        if self.is_taking_polls().await {
            return Ok(long_poll::await_tasks(context, &self.hub, request).await?);
        }
        if is_forwarded {
            return Err(Refusal::not_leader().into());
        }
        let deadline = Instant::now() + wait_of(&request) + AWAIT_RESERVE;
        let response = forward::await_tasks(context, request, deadline);
        tokio::select! {
            response = response => response,
            refusal = interrupted(context) => Err(refusal.into()),
        }
    }

    /// Whether polls are opened here. A node that has just become the leader opens them a moment
    /// later, and this waits for that moment. Opening a poll gives the definite answer.
    async fn is_taking_polls(&self) -> bool {
        // The hub is that of the only group.
        let leadership = self.context.node_gateway.home().replica().leadership();
        let is_leading = {
            let leadership = leadership.borrow();
            leadership.is_self && leadership.is_ready
        };
        is_leading && timeout(TERM_BEGIN_MAX, self.hub.taking()).await.is_ok()
    }
}

#[tonic::async_trait]
impl WorkerService for Workers {
    type StreamStream = Outgoing;

    async fn register(
        &self,
        call: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::register(&context, request, deadline)
        })
        .await
    }

    async fn heartbeat(
        &self,
        call: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::heartbeat(&context, request, deadline)
        })
        .await
    }

    async fn drain(
        &self,
        call: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::drain(&context, request, deadline)
        })
        .await
    }

    async fn deregister(
        &self,
        call: Request<v1::DeregisterRequest>,
    ) -> Result<Response<v1::DeregisterResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::deregister(&context, request, deadline)
        })
        .await
    }

    async fn list_workers(
        &self,
        call: Request<v1::ListWorkersRequest>,
    ) -> Result<Response<v1::ListWorkersResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::list(&context, request, deadline)
        })
        .await
    }

    async fn get_worker(
        &self,
        call: Request<v1::GetWorkerRequest>,
    ) -> Result<Response<v1::WorkerRecord>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, |deadline, request| {
            registry::get(&context, request, deadline)
        })
        .await
    }

    async fn r#await(
        &self,
        request: Request<v1::AwaitRequest>,
    ) -> Result<Response<v1::AwaitResponse>, Status> {
        let context = CallContext::of(&self.context, &request).await?;
        let is_forwarded = ForwardedActor::is_in(&request);
        let memory = ResponseMemory::of(&request)?;
        let response = self
            .await_tasks(&context, request.into_inner(), is_forwarded)
            .await?;
        // Tasks of a response that is not sent are redelivered at the next poll.
        Ok(memory.respond(response)?)
    }

    async fn complete(
        &self,
        call: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let bodies = request
                .completions
                .into_iter()
                .map(|completion| completion_body(&context, completion))
                .collect();
            let results = reports::submit_all(&context, &request.namespace, bodies, deadline);
            Ok(v1::CompleteResponse {
                results: results.await?,
            })
        })
        .await
    }

    async fn accept(
        &self,
        call: Request<v1::AcceptRequest>,
    ) -> Result<Response<v1::AcceptResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let acceptances = request.acceptances.iter();
            let bodies = acceptances
                .map(|acceptance| acceptance_body(&context, acceptance))
                .collect();
            let results = reports::submit_all(&context, &request.namespace, bodies, deadline);
            Ok(v1::AcceptResponse {
                results: results.await?,
            })
        })
        .await
    }

    async fn fail(
        &self,
        call: Request<v1::FailRequest>,
    ) -> Result<Response<v1::FailResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let failures = request.failures.into_iter();
            let bodies = failures
                .map(|failure| failure_body(&context, failure))
                .collect();
            let results = reports::submit_all(&context, &request.namespace, bodies, deadline);
            Ok(v1::FailResponse {
                results: results.await?,
            })
        })
        .await
    }

    async fn touch(
        &self,
        call: Request<v1::TouchRequest>,
    ) -> Result<Response<v1::TouchResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let touches = request.touches.iter();
            let bodies = touches.map(|touch| touch_body(&context, touch)).collect();
            let results = reports::submit_all(&context, &request.namespace, bodies, deadline);
            Ok(v1::TouchResponse {
                results: results.await?,
            })
        })
        .await
    }

    async fn add_task_info(
        &self,
        call: Request<v1::AddTaskInfoRequest>,
    ) -> Result<Response<v1::AddTaskInfoResponse>, Status> {
        let context = CallContext::of(&self.context, &call).await?;
        serve_call(&context, call, async |deadline, request| {
            let command = Command {
                request_id: Some(request::request_id(&request.request_id)?),
                scope: request::namespace(&request.namespace)?,
                body: AddTaskInfo {
                    token: token(&context, &request.task_token)?,
                    content: request::info(&request.content)?,
                },
            };
            let reply::InfoAdded { number } = context.gateway.submit(command, deadline).await?;
            Ok(v1::AddTaskInfoResponse { number })
        })
        .await
    }

    async fn stream(
        &self,
        request: Request<Streaming<v1::WorkerMessage>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        let context = CallContext::of(&self.context, &request).await?;
        if !self.is_taking_polls().await {
            return Err(Refusal::not_leader().into());
        }
        let (context, hub) = (context.clone(), self.hub.clone());
        let responses = ResponseMemory::of(&request)?;
        let incoming = Incoming {
            arrived: ArrivedMessages::of(&request)?,
            messages: request.into_inner(),
        };
        let (connection, outgoing) = Connection::new(context, hub, incoming, responses);
        tokio::spawn(connection.serve());
        Ok(Response::new(outgoing))
    }
}
