//! The worker service (A20–A22).

use super::assignment::to_wire;
use super::forward::Leaders;
use super::hub::Hub;
use super::poll::ToWorker;
use super::records;
use super::reports::{self, completion_body, failure_body, touch_body};
use super::session::{Session, greet};
use crate::context::Context;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::{deadline, request};
use flotilla_api::v1;
use flotilla_api::v1::worker_service_server::WorkerService;
use flotilla_engine::ids::{Namespace, WorkerId};
use flotilla_engine::{
    Body, Command, DeregisterWorker, DrainWorker, HeartbeatWorker, Rejection, Reply, view,
};
use futures::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

/// Items of one batch of reports.
const BATCH_ITEMS_MAX: usize = 1_000;
/// A long poll's wait when none is given, and at most, in milliseconds (A22).
const AWAIT_MS_DEFAULT: u64 = 30_000;
const AWAIT_MS_MAX: u64 = 300_000;
/// Messages that wait for the transport of one stream.
const STREAM_MESSAGES_MAX: usize = 256;

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

    fn is_leading(&self) -> bool {
        let leadership = self.context.gateway.replica().leadership();
        let leadership = leadership.borrow();
        leadership.is_self && leadership.is_ready
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
        if bodies.len() > BATCH_ITEMS_MAX {
            let message = format!(
                "expected at most {BATCH_ITEMS_MAX} reports in one call, but found {}",
                bodies.len()
            );
            return Err(Refusal::invalid("reports", message));
        }
        let submitted = bodies
            .into_iter()
            .map(|body| reports::submit(&self.context, (namespace.clone(), body), deadline));
        Ok(join_all(submitted).await)
    }

    /// Waits for tasks at this node, which leads.
    async fn await_here(&self, asked: v1::AwaitRequest) -> Result<v1::AwaitResponse, Refusal> {
        let deadline = Instant::now() + wait_of(&asked);
        let slots = u64::from(asked.slots.max(1));
        let hello = v1::WorkerHello {
            namespace: asked.namespace,
            worker_id: asked.worker_id,
            incarnation: asked.incarnation,
            actions: asked.actions,
            held_task_tokens: asked.held_task_tokens,
        };
        let greeted = greet(&self.context, hello.clone()).await?;
        let (number, mut tasks) = self.hub.open(greeted.request);
        // The caller may go away at any await; a poll without a reader must not keep its slots.
        let _guard = self.hub.guard(number);
        // As in a session: leases are read again once the poll is open.
        let greeted = greet(&self.context, hello).await?;
        let mut response = v1::AwaitResponse {
            tasks: Vec::new(),
            draining: greeted.is_draining,
        };
        for (assignment, input) in greeted.to_hand_out {
            response.tasks.push(to_wire(assignment, input));
        }
        if response.tasks.is_empty() && !response.draining {
            // A closed poll answers without tasks: the worker asks again, and finds the new leader.
            let _ = self.hub.set_total(number, slots);
            collect(&mut tasks, &mut response, deadline).await;
        }
        Ok(response)
    }
}

/// How long a poll waits, within its bound (A22).
fn wait_of(asked: &v1::AwaitRequest) -> Duration {
    Duration::from_millis(asked.wait_ms.unwrap_or(AWAIT_MS_DEFAULT).min(AWAIT_MS_MAX))
}

/// Waits for the first delivery, then takes what has come with it.
async fn collect(
    tasks: &mut mpsc::Receiver<ToWorker>,
    response: &mut v1::AwaitResponse,
    deadline: Instant,
) {
    let mut next = timeout_at(deadline, tasks.recv()).await.ok().flatten();
    while let Some(delivered) = next {
        match delivered {
            ToWorker::Task(assignment, input) => response.tasks.push(to_wire(*assignment, input)),
            ToWorker::Revoked(token) => {
                let token = token.to_string();
                response.tasks.retain(|task| task.task_token != token);
            }
            ToWorker::Draining => response.draining = true,
        }
        next = tasks.try_recv().ok();
    }
}

#[tonic::async_trait]
impl WorkerService for Workers {
    type StreamStream = ReceiverStream<Result<v1::ServerMessage, Status>>;

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
        let body = Body::DrainWorker(DrainWorker { worker_id });
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
        if self.is_leading() {
            return Ok(Response::new(self.await_here(asked.into_inner()).await?));
        }
        let deadline = Instant::now() + wait_of(asked.get_ref()) + Duration::from_secs(5);
        let response = self
            .leaders
            .await_tasks(&self.context, asked.into_inner(), deadline)
            .await;
        Ok(Response::new(response?))
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
        if !self.is_leading() {
            return Err(Refusal::not_leader().into());
        }
        let (outgoing, receiver) = mpsc::channel(STREAM_MESSAGES_MAX);
        let session = Session {
            context: self.context.clone(),
            hub: self.hub.clone(),
            incoming: asked.into_inner(),
            outgoing,
        };
        tokio::spawn(session.serve());
        Ok(Response::new(ReceiverStream::new(receiver)))
    }
}
