//! The worker service (A20–A22).

use super::forward::{Leaders, is_forwarded};
use super::greeting::bounded;
use super::hub::Hub;
use super::long_poll::{self, wait_of};
use super::records;
use super::reports::{self, acceptance_body, completion_body, failure_body, touch_body};
use super::session::{Outgoing, Session};
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::{AWAIT_RESERVE, REPORTS_BATCH_MAX, TERM_BEGIN_MAX};
use crate::{deadline, request};
use flotilla_api::v1;
use flotilla_api::v1::worker_service_server::WorkerService;
use flotilla_engine::ids::{Namespace, WorkerId};
use flotilla_engine::{
    Body, Command, DeregisterWorker, DrainWorker, HeartbeatWorker, Rejection, Reply, view,
};
use futures::future::join_all;
use std::sync::Arc;
use tokio::time::{Instant, timeout};
use tonic::{Request, Response, Status, Streaming};

/// The worker service of this node.
pub(crate) struct Workers {
    context: Arc<Context>,
    hub: Arc<Hub>,
    leaders: Leaders,
}

impl Workers {
    /// The service over the node's open polls.
    pub(crate) fn new(context: Arc<Context>, hub: Arc<Hub>) -> Self {
        Self {
            context,
            hub,
            leaders: Leaders::default(),
        }
    }

    /// Whether polls are opened here. A node that has just become the leader takes them a moment
    /// later; that moment is waited for. Whoever opens a poll learns for sure.
    async fn is_taking_polls(&self) -> bool {
        let leadership = self.context.gateway.replica().leadership();
        let is_leading = {
            let leadership = leadership.borrow();
            leadership.is_self && leadership.is_ready
        };
        is_leading && timeout(TERM_BEGIN_MAX, self.hub.taking()).await.is_ok()
    }

    async fn read_worker(
        &self,
        namespace: Namespace,
        id: WorkerId,
        deadline: Instant,
    ) -> Result<v1::WorkerRecord, Refusal> {
        let asked = (namespace.clone(), id.clone());
        let read = move |reader: &dyn flotilla_engine::store::Reader| {
            view::worker(reader, &asked.0, &asked.1)
        };
        let worker = self
            .context
            .gateway
            .read(Freshness::Linearizable, deadline, read)
            .await?;
        let worker = worker.ok_or(Rejection::WorkerNotFound(id))?;
        Ok(records::record(&namespace, worker))
    }

    /// Submits the items of a batch together: they travel in one entry.
    async fn report(
        &self,
        namespace: &str,
        bodies: Vec<Result<Body, Refusal>>,
        deadline: Instant,
    ) -> Result<Vec<v1::ItemResult>, Refusal> {
        let namespace = request::namespace(namespace)?;
        bounded("reports", bodies.len(), REPORTS_BATCH_MAX)?;
        let submitted = bodies
            .into_iter()
            .map(|body| reports::submit(&self.context, (namespace.clone(), body), deadline));
        Ok(join_all(submitted).await)
    }
}

#[tonic::async_trait]
impl WorkerService for Workers {
    type StreamStream = Outgoing;

    async fn register(
        &self,
        asked: Request<v1::RegisterRequest>,
    ) -> Result<Response<v1::RegisterResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let namespace = request::namespace(&asked.namespace)?;
        let registration = records::registration(asked)?;
        let id = registration.worker_id.clone();
        let body = Body::RegisterWorker(Box::new(registration));
        self.context
            .gateway
            .submit(Command::new(namespace.clone(), body), deadline)
            .await?;
        let worker = self.read_worker(namespace, id, deadline).await?;
        Ok(Response::new(v1::RegisterResponse {
            worker: Some(worker),
        }))
    }

    async fn heartbeat(
        &self,
        asked: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let namespace = request::namespace(&asked.namespace)?;
        let body = Body::HeartbeatWorker(HeartbeatWorker {
            worker_id: request::name(WorkerId::new(asked.worker_id))?,
            incarnation: asked.incarnation,
            load: asked.current_load,
        });
        let reply = self
            .context
            .gateway
            .submit(Command::new(namespace, body), deadline)
            .await?;
        let status = match reply {
            Reply::WorkerHeard { is_draining: true } => v1::WorkerStatus::Draining,
            _ if asked.current_load == 0 => v1::WorkerStatus::Idle,
            _ => v1::WorkerStatus::Active,
        };
        Ok(Response::new(v1::HeartbeatResponse {
            status: status.into(),
        }))
    }

    async fn drain(
        &self,
        asked: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let namespace = request::namespace(&asked.namespace)?;
        let worker_id = request::name(WorkerId::new(asked.worker_id))?;
        let body = Body::DrainWorker(DrainWorker {
            worker_id,
            incarnation: asked.incarnation,
        });
        let request_id = Some(request::request_id(&asked.request_id)?);
        self.context
            .gateway
            .submit(
                Command {
                    request_id,
                    namespace,
                    body,
                },
                deadline,
            )
            .await?;
        Ok(Response::new(v1::DrainResponse {}))
    }

    async fn deregister(
        &self,
        asked: Request<v1::DeregisterRequest>,
    ) -> Result<Response<v1::DeregisterResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let namespace = request::namespace(&asked.namespace)?;
        let worker_id = request::name(WorkerId::new(asked.worker_id))?;
        let incarnation = asked.incarnation;
        let body = Body::DeregisterWorker(DeregisterWorker {
            worker_id,
            incarnation,
        });
        let request_id = Some(request::request_id(&asked.request_id)?);
        self.context
            .gateway
            .submit(
                Command {
                    request_id,
                    namespace,
                    body,
                },
                deadline,
            )
            .await?;
        Ok(Response::new(v1::DeregisterResponse {}))
    }

    async fn list_workers(
        &self,
        asked: Request<v1::ListWorkersRequest>,
    ) -> Result<Response<v1::ListWorkersResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let namespace = request::namespace(&asked.namespace)?;
        let page = request::page(asked.limit, &asked.page_token)?;
        let scope = namespace.clone();
        let read = move |reader: &dyn flotilla_engine::store::Reader| {
            view::workers(reader, &scope, page.scope())
        };
        let found = self
            .context
            .gateway
            .scan(Freshness::Linearizable, deadline, read)
            .await?;
        let items = found
            .items
            .into_iter()
            .map(|worker| records::record(&namespace, worker));
        Ok(Response::new(v1::ListWorkersResponse {
            items: items.collect(),
            next_page: request::page_token(found.next),
        }))
    }

    async fn get_worker(
        &self,
        asked: Request<v1::GetWorkerRequest>,
    ) -> Result<Response<v1::WorkerRecord>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let namespace = request::namespace(&asked.namespace)?;
        let id = request::name(WorkerId::new(asked.worker_id))?;
        Ok(Response::new(
            self.read_worker(namespace, id, deadline).await?,
        ))
    }

    async fn r#await(
        &self,
        asked: Request<v1::AwaitRequest>,
    ) -> Result<Response<v1::AwaitResponse>, Status> {
        let is_forwarded = is_forwarded(asked.metadata());
        let asked = asked.into_inner();
        if self.is_taking_polls().await {
            let answered = long_poll::await_tasks(&self.context, &self.hub, asked).await;
            return Ok(Response::new(answered?));
        }
        if is_forwarded {
            return Err(Refusal::not_leader().into());
        }
        let deadline = Instant::now() + wait_of(&asked) + AWAIT_RESERVE;
        let answered = self.leaders.await_tasks(&self.context, asked, deadline);
        Ok(Response::new(answered.await?))
    }

    async fn complete(
        &self,
        asked: Request<v1::CompleteRequest>,
    ) -> Result<Response<v1::CompleteResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let bodies = asked.completions.into_iter().map(completion_body).collect();
        let results = self.report(&asked.namespace, bodies, deadline).await?;
        Ok(Response::new(v1::CompleteResponse { results }))
    }

    async fn accept(
        &self,
        asked: Request<v1::AcceptRequest>,
    ) -> Result<Response<v1::AcceptResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let bodies = asked.acceptances.iter().map(acceptance_body).collect();
        let results = self.report(&asked.namespace, bodies, deadline).await?;
        Ok(Response::new(v1::AcceptResponse { results }))
    }

    async fn fail(
        &self,
        asked: Request<v1::FailRequest>,
    ) -> Result<Response<v1::FailResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let bodies = asked.failures.into_iter().map(failure_body).collect();
        let results = self.report(&asked.namespace, bodies, deadline).await?;
        Ok(Response::new(v1::FailResponse { results }))
    }

    async fn touch(
        &self,
        asked: Request<v1::TouchRequest>,
    ) -> Result<Response<v1::TouchResponse>, Status> {
        let deadline = deadline::of(asked.metadata());
        let asked = asked.into_inner();
        let bodies = asked.touches.iter().map(touch_body).collect();
        let results = self.report(&asked.namespace, bodies, deadline).await?;
        Ok(Response::new(v1::TouchResponse { results }))
    }

    async fn stream(
        &self,
        asked: Request<Streaming<v1::WorkerMessage>>,
    ) -> Result<Response<Self::StreamStream>, Status> {
        if !self.is_taking_polls().await {
            return Err(Refusal::not_leader().into());
        }
        let (context, hub) = (self.context.clone(), self.hub.clone());
        let (session, outgoing) = Session::new(context, hub, asked.into_inner());
        tokio::spawn(session.serve());
        Ok(Response::new(outgoing))
    }
}
