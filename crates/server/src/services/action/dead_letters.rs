//! Dead-letter queues (A6).

use crate::context::Context;
use crate::convert;
use crate::errors::Refusal;
use crate::gateway::Freshness;
use crate::limits::PAGE_ROWS_MAX;
use crate::request;
use flotilla_api::v1;
use flotilla_engine::ids::{ActionName, ActionRunNumber, Namespace};
use flotilla_engine::store::Reader;
use flotilla_engine::{
    Command, LetterChoice, Operation, PurgeDeadLetters, Rejection, RejectionCode, RequestId,
    RequeueDeadLetters, reply, view,
};
use tokio::time::Instant;

/// Serves `ListDeadLetters`.
pub(super) async fn list(
    context: &Context,
    asked: v1::ListDeadLettersRequest,
    deadline: Instant,
) -> Result<v1::ListDeadLettersResponse, Refusal> {
    let queue = Queue::new(&asked.namespace, asked.action)?;
    let page = request::page(asked.limit, &asked.page_token)?;
    let Queue { namespace, action } = queue.clone();
    let list = move |reader: &dyn Reader| {
        let counts = view::dead_letter_queue(reader, &namespace, &action)?;
        let found = view::dead_letters(reader, &namespace, &action, page.scope())?;
        Ok((counts, found))
    };
    let (counts, found) = context
        .gateway
        .scan(Freshness::Linearizable, deadline, list)
        .await?;
    let row = |letter| convert::dead_letter::row(letter, &queue.action);
    Ok(v1::ListDeadLettersResponse {
        items: found.items.into_iter().map(row).collect(),
        next_page: request::page_token(found.next),
        count: counts.letters_count,
        dropped_count: counts.dropped_count,
    })
}

/// Serves `GetDeadLetter`.
pub(super) async fn get(
    context: &Context,
    asked: v1::GetDeadLetterRequest,
    deadline: Instant,
) -> Result<v1::DeadLetter, Refusal> {
    let Queue { namespace, action } = Queue::new(&asked.namespace, asked.action)?;
    let number = number(&asked.id)?;
    let look_up = |reader: &dyn Reader| view::dead_letter(reader, &namespace, &action, number);
    let found = context
        .gateway
        .read(Freshness::Linearizable, deadline, look_up)
        .await?;
    let letter = found.ok_or(Rejection::DeadLetterNotFound(number))?;
    Ok(convert::dead_letter::message(letter, &action))
}

/// Serves `RequeueDeadLetters`.
pub(super) async fn requeue(
    context: &Context,
    asked: v1::RequeueDeadLettersRequest,
    deadline: Instant,
) -> Result<v1::RequeueDeadLettersResponse, Refusal> {
    let mut answer = v1::RequeueDeadLettersResponse::default();
    let queue = Queue::new(&asked.namespace, asked.action)?;
    let request_id = request::request_id(&asked.request_id)?;
    let piece = first_piece(context, &queue, (&asked.id, request_id), deadline).await?;
    let body = |letters| {
        let action = queue.action.clone();
        RequeueDeadLetters { action, letters }
    };
    let mut pieces = Pieces::new(piece, body);
    while let Some(reply) = pieces.submit_next(context, &queue, deadline).await? {
        let reply::DeadLettersRequeued {
            action_runs,
            has_more,
        } = reply;
        answer.requeued += action_runs.len() as u64;
        let room = PAGE_ROWS_MAX as usize - answer.action_run_ids.len();
        let named = action_runs.iter().take(room);
        answer.action_run_ids.extend(named.map(ToString::to_string));
        pieces.is_over = !has_more;
    }
    Ok(answer)
}

/// Serves `PurgeDeadLetters`.
pub(super) async fn purge(
    context: &Context,
    asked: v1::PurgeDeadLettersRequest,
    deadline: Instant,
) -> Result<v1::PurgeDeadLettersResponse, Refusal> {
    let mut answer = v1::PurgeDeadLettersResponse::default();
    let queue = Queue::new(&asked.namespace, asked.action)?;
    let request_id = request::request_id(&asked.request_id)?;
    let piece = first_piece(context, &queue, (&asked.id, request_id), deadline).await?;
    let body = |letters| {
        let action = queue.action.clone();
        PurgeDeadLetters { action, letters }
    };
    let mut pieces = Pieces::new(piece, body);
    while let Some(reply) = pieces.submit_next(context, &queue, deadline).await? {
        answer.purged += u64::from(reply.count);
        pieces.is_over = !reply.has_more;
    }
    Ok(answer)
}

/// Whose dead letters.
#[derive(Clone, Debug)]
struct Queue {
    namespace: Namespace,
    action: ActionName,
}

impl Queue {
    fn new(namespace: &str, action: String) -> Result<Self, Refusal> {
        Ok(Self {
            namespace: request::namespace(namespace)?,
            action: request::name(ActionName::new(action))?,
        })
    }
}

/// What one command is about: the engine takes many letters in bounded pieces.
struct Piece {
    letters: LetterChoice,
    request_id: RequestId,
}

/// The commands of one call, a piece at a time.
struct Pieces<MakeBody> {
    next: Option<Piece>,
    make_body: MakeBody,
    /// Set when a reply says that nothing is left.
    is_over: bool,
}

impl<O: Operation, MakeBody: Fn(LetterChoice) -> O> Pieces<MakeBody> {
    fn new(first: Option<Piece>, make_body: MakeBody) -> Self {
        Self {
            is_over: first.is_none(),
            next: first,
            make_body,
        }
    }

    /// Submits the next piece; `None` when nothing is left.
    async fn submit_next(
        &mut self,
        context: &Context,
        queue: &Queue,
        deadline: Instant,
    ) -> Result<Option<O::Reply>, Refusal> {
        let Some(piece) = self.next.take().filter(|_| !self.is_over) else {
            return Ok(None);
        };
        let command = Command {
            request_id: Some(piece.request_id),
            namespace: queue.namespace.clone(),
            body: (self.make_body)(piece.letters),
        };
        // The rest of the same letters. What this piece takes is gone then, so each has an id of its
        // own.
        self.next = Some(Piece {
            request_id: request::draw_request_id(),
            ..piece
        });
        context.gateway.submit(command, deadline).await.map(Some)
    }
}

/// The letter that is asked for; or all up to the newest one, and `None` when there are none.
///
/// A repeated call for all of them may find another newest one, which the caller's request id would
/// turn into a conflict. It needs no id: what the first one took is no letter any more.
async fn first_piece(
    context: &Context,
    queue: &Queue,
    (id, request_id): (&str, RequestId),
    deadline: Instant,
) -> Result<Option<Piece>, Refusal> {
    if !id.is_empty() {
        let letters = LetterChoice::One(number(id)?);
        return Ok(Some(Piece {
            letters,
            request_id,
        }));
    }
    let Queue { namespace, action } = queue;
    let newest = |reader: &dyn Reader| view::dead_letters(reader, namespace, action, (None, 1));
    let found = context
        .gateway
        .read(Freshness::Linearizable, deadline, newest)
        .await?;
    Ok(found.items.first().map(|newest| Piece {
        letters: LetterChoice::UpTo(newest.action_run),
        request_id: request::draw_request_id(),
    }))
}

fn number(id: &str) -> Result<ActionRunNumber, Refusal> {
    ActionRunNumber::from_id(id).ok_or_else(|| {
        let message =
            format!("expected a dead letter of this action, but there is none with the id {id:?}");
        Refusal::new(RejectionCode::DeadLetterNotFound, message)
            .with_hint("`flo action dlq list NAME` lists them")
    })
}
