//! Dead-letter queues (A6).

use crate::access::CallContext;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::PAGE_ROWS_MAX;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, ActionRunNumber, Namespace};
use flotilla_engine::store::Reader;
use flotilla_engine::view::PageRange;
use flotilla_engine::{
    Command, DeadLetterSelector, Operation, PurgeDeadLetters, Rejection, RejectionCode, RequestId,
    RequeueDeadLetters, reply, view,
};
use tokio::time::Instant;

/// Serves `ListDeadLetters`.
pub(super) async fn list(
    context: &CallContext,
    request: v1::ListDeadLettersRequest,
    deadline: Instant,
) -> Result<v1::ListDeadLettersResponse, Refusal> {
    let queue = Queue::new(&request.namespace, request.action)?;
    let gateway = context.gateway.of(&queue.namespace);
    let page = request::page(request.limit, &request.page_token)?;
    let Queue { namespace, action } = queue.clone();
    let list = move |reader: &dyn Reader| {
        let counts = view::dead_letter_queue(reader, &namespace, &action)?;
        let found = view::dead_letters(reader, &namespace, &action, page.range())?;
        Ok((counts, found))
    };
    let (counts, found) = gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let row = |dead_letter| convert::dead_letter::row(dead_letter, &queue.action);
    Ok(v1::ListDeadLettersResponse {
        items: found.items.into_iter().map(row).collect(),
        next_page_token: request::page_token(found.next),
        dead_letter_count: counts.dead_letter_count,
        dropped_count: counts.dropped_count,
    })
}

/// Serves `GetDeadLetter`.
pub(super) async fn get(
    context: &CallContext,
    request: v1::GetDeadLetterRequest,
    deadline: Instant,
) -> Result<v1::DeadLetter, Refusal> {
    let Queue { namespace, action } = Queue::new(&request.namespace, request.action)?;
    let gateway = context.gateway.of(&namespace);
    let number = number(&request.id)?;
    let of_action = action.clone();
    let look_up =
        move |reader: &dyn Reader| view::dead_letter(reader, &namespace, &of_action, number);
    let found = gateway
        .scan(Freshness::Linearizable, deadline, look_up)
        .await?;
    let (dead_letter, input) = found.ok_or(Rejection::DeadLetterNotFound(number))?;
    Ok(convert::dead_letter::message(dead_letter, input, &action))
}

/// Serves `RequeueDeadLetters`.
pub(super) async fn requeue(
    context: &CallContext,
    request: v1::RequeueDeadLettersRequest,
    deadline: Instant,
) -> Result<v1::RequeueDeadLettersResponse, Refusal> {
    let mut answer = v1::RequeueDeadLettersResponse::default();
    let queue = Queue::new(&request.namespace, request.action)?;
    let request_id = request::request_id(&request.request_id)?;
    let batch = match named(&request.id, request_id)? {
        Some(batch) => Some(batch),
        None => all(context, &queue, deadline).await?,
    };
    let body = |dead_letters| {
        let action = queue.action.clone();
        RequeueDeadLetters {
            action,
            dead_letters,
        }
    };
    let mut batches = DeadLetterBatches::new(batch, body);
    while let Some(reply) = batches.submit_next(context, &queue, deadline).await? {
        let reply::DeadLettersRequeued {
            action_runs,
            has_more,
        } = reply;
        answer.requeued_count += action_runs.len() as u64;
        let room = PAGE_ROWS_MAX as usize - answer.action_run_ids.len();
        let named = action_runs.iter().take(room);
        answer.action_run_ids.extend(named.map(ToString::to_string));
        // A piece in which nothing can be requeued says that the sets of labels are used up.
        answer.has_more = has_more && action_runs.is_empty();
        batches.is_over = !has_more || answer.has_more;
    }
    Ok(answer)
}

/// Serves `PurgeDeadLetters`.
pub(super) async fn purge(
    context: &CallContext,
    request: v1::PurgeDeadLettersRequest,
    deadline: Instant,
) -> Result<v1::PurgeDeadLettersResponse, Refusal> {
    let mut answer = v1::PurgeDeadLettersResponse::default();
    let queue = Queue::new(&request.namespace, request.action)?;
    let request_id = request::request_id(&request.request_id)?;
    let batch = match named(&request.id, request_id)? {
        Some(batch) => Some(batch),
        None => all(context, &queue, deadline).await?,
    };
    let body = |dead_letters| {
        let action = queue.action.clone();
        PurgeDeadLetters {
            action,
            dead_letters,
        }
    };
    let mut batches = DeadLetterBatches::new(batch, body);
    while let Some(reply) = batches.submit_next(context, &queue, deadline).await? {
        answer.purged_count += u64::from(reply.count);
        batches.is_over = !reply.has_more;
    }
    Ok(answer)
}

/// The action whose dead letters a call is about.
#[derive(Clone, Debug)]
struct Queue {
    namespace: Namespace,
    action: ActionName,
}

impl Queue {
    fn new(namespace: &str, action: String) -> Result<Self, Refusal> {
        Ok(Self {
            namespace: request::namespace(namespace)?,
            action: request::name("action", ActionName::new(action))?,
        })
    }
}

/// The dead letters of one command: the engine handles many in bounded batches.
struct DeadLetterBatch {
    dead_letters: DeadLetterSelector,
    request_id: RequestId,
}

/// The commands of one call, one batch at a time.
struct DeadLetterBatches<MakeBody> {
    next: Option<DeadLetterBatch>,
    make_body: MakeBody,
    /// Set when a reply says that nothing is left.
    is_over: bool,
}

impl<O: Operation<Scope = Namespace>, MakeBody: Fn(DeadLetterSelector) -> O>
    DeadLetterBatches<MakeBody>
{
    fn new(first: Option<DeadLetterBatch>, make_body: MakeBody) -> Self {
        Self {
            is_over: first.is_none(),
            next: first,
            make_body,
        }
    }

    /// Submits the next batch; `None` when nothing is left.
    async fn submit_next(
        &mut self,
        context: &CallContext,
        queue: &Queue,
        deadline: Instant,
    ) -> Result<Option<O::Reply>, Refusal> {
        let Some(batch) = self.next.take().filter(|_| !self.is_over) else {
            return Ok(None);
        };
        let command = Command {
            request_id: Some(batch.request_id),
            scope: queue.namespace.clone(),
            body: (self.make_body)(batch.dead_letters),
        };
        // The rest of the same dead letters. Those of this batch are gone by then, so each batch
        // has its own request id.
        self.next = Some(DeadLetterBatch {
            request_id: request::draw_request_id(),
            ..batch
        });
        context.gateway.submit(command, deadline).await.map(Some)
    }
}

/// The dead letter that the request names; `None` if it is about all of them.
fn named(id: &str, request_id: RequestId) -> Result<Option<DeadLetterBatch>, Refusal> {
    if id.is_empty() {
        return Ok(None);
    }
    Ok(Some(DeadLetterBatch {
        dead_letters: DeadLetterSelector::One(number(id)?),
        request_id,
    }))
}

/// All dead letters up to the newest one; `None` if there are none.
///
/// A repeated call may find a newer last one, and the caller's request id would turn that into a
/// conflict. It needs no request id: what the first call took is no longer a dead letter.
async fn all(
    context: &CallContext,
    queue: &Queue,
    deadline: Instant,
) -> Result<Option<DeadLetterBatch>, Refusal> {
    let Queue { namespace, action } = queue;
    let newest =
        |reader: &dyn Reader| view::dead_letters(reader, namespace, action, PageRange::first(1));
    let found = context
        .gateway
        .of(namespace)
        .read(Freshness::Linearizable, deadline, newest)
        .await?;
    Ok(found.items.first().map(|newest| DeadLetterBatch {
        dead_letters: DeadLetterSelector::UpTo(newest.place),
        request_id: request::draw_request_id(),
    }))
}

fn number(id: &str) -> Result<ActionRunNumber, Refusal> {
    ActionRunNumber::from_id(id).ok_or_else(|| {
        let message = format!("expected a dead letter of this action, but none has the id {id:?}");
        Refusal::new(RejectionCode::DeadLetterNotFound, message)
            .with_hint("`flo action dlq list NAME` lists the dead letters")
    })
}
