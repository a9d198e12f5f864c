//! The registry's calls: workers register, send heartbeats, drain and deregister (A20, A21).

use super::records;
use crate::access::CallContext;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{Namespace, WorkerId};
use flotilla_engine::store::Reader;
use flotilla_engine::{
    Body, Command, DeregisterWorker, DrainWorker, HeartbeatWorker, Rejection, view,
};
use tokio::time::Instant;

/// Serves `Register`.
pub(super) async fn register(
    context: &CallContext,
    request: v1::RegisterRequest,
    deadline: Instant,
) -> Result<v1::RegisterResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let registration = records::registration(request)?;
    let id = registration.worker_id.clone();
    let body = Body::RegisterWorker(Box::new(registration));
    let command = body.into_command(namespace.clone());
    context
        .gateway
        .of(&namespace)
        .submit(command, deadline)
        .await?;
    let worker = read(context, namespace, id, deadline).await?;
    Ok(v1::RegisterResponse {
        worker: Some(worker),
    })
}

/// Serves `Heartbeat`.
pub(super) async fn heartbeat(
    context: &CallContext,
    request: v1::HeartbeatRequest,
    deadline: Instant,
) -> Result<v1::HeartbeatResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let body = HeartbeatWorker {
        worker_id: request::name("worker_id", WorkerId::new(request.worker_id))?,
        incarnation: request.incarnation,
        load: request.current_load,
    };
    let command = Command::new(namespace, body);
    let heard = context.gateway.submit(command, deadline).await?;
    let status = if heard.is_draining {
        v1::WorkerStatus::Draining
    } else if request.current_load == 0 {
        v1::WorkerStatus::Idle
    } else {
        v1::WorkerStatus::Active
    };
    Ok(v1::HeartbeatResponse {
        status: status.into(),
    })
}

/// Serves `Drain`.
pub(super) async fn drain(
    context: &CallContext,
    request: v1::DrainRequest,
    deadline: Instant,
) -> Result<v1::DrainResponse, Refusal> {
    let worker_id = request::name("worker_id", WorkerId::new(request.worker_id))?;
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body: DrainWorker {
            worker_id,
            incarnation: request.incarnation,
        },
    };
    context.gateway.submit(command, deadline).await?;
    Ok(v1::DrainResponse {})
}

/// Serves `Deregister`.
pub(super) async fn deregister(
    context: &CallContext,
    request: v1::DeregisterRequest,
    deadline: Instant,
) -> Result<v1::DeregisterResponse, Refusal> {
    let body = DeregisterWorker {
        worker_id: request::name("worker_id", WorkerId::new(request.worker_id))?,
        incarnation: request.incarnation,
    };
    let command = Command {
        request_id: Some(request::request_id(&request.request_id)?),
        scope: request::namespace(&request.namespace)?,
        body,
    };
    context.gateway.submit(command, deadline).await?;
    Ok(v1::DeregisterResponse {})
}

/// Serves `ListWorkers`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListWorkersRequest,
    deadline: Instant,
) -> Result<v1::ListWorkersResponse, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let gateway = context.gateway.of(&namespace);
    let page = request::page(request.limit, &request.page_token)?;
    let scope = namespace.clone();
    let list = move |reader: &dyn Reader| view::workers(reader, &scope, page.range());
    let found = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let row = |worker| records::record(&namespace, worker);
    Ok(v1::ListWorkersResponse {
        items: found.items.into_iter().map(row).collect(),
        next_page_token: request::page_token(found.next),
    })
}

/// Serves `GetWorker`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetWorkerRequest,
    deadline: Instant,
) -> Result<v1::WorkerRecord, Refusal> {
    let namespace = request::namespace(&request.namespace)?;
    let id = request::name("worker_id", WorkerId::new(request.worker_id))?;
    read(context, namespace, id, deadline).await
}

async fn read(
    context: &CallContext,
    namespace: Namespace,
    id: WorkerId,
    deadline: Instant,
) -> Result<v1::WorkerRecord, Refusal> {
    let look_up = |reader: &dyn Reader| view::worker_with_counts(reader, &namespace, &id);
    let worker = context
        .gateway
        .of(&namespace)
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    let worker = worker.ok_or(Rejection::WorkerNotFound(id))?;
    Ok(records::record(&namespace, worker))
}
