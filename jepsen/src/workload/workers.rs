//! External workers of a workload.

use super::Session;
use super::session::Invocation;
use crate::history::{History, Moment};
use flotilla_client::{ActionContext, ActionResult, HandlerError, Worker};
use flotilla_tests::Flo;
use futures::future::{BoxFuture, FutureExt, join_all};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Workers of each workload: one for each node of a cluster of three.
const WORKERS: usize = 3;
const CONCURRENCY: usize = 4;

/// The handler of a task; it gets the worker's name.
pub(super) type Handler =
    Arc<dyn Fn(String, ActionContext) -> BoxFuture<'static, Handled> + Send + Sync>;

/// The result of a task.
pub(super) type Handled = Result<ActionResult, HandlerError>;

/// What workers have tried, so that the first attempt can fail.
#[derive(Debug, Default)]
pub(super) struct Tried(Mutex<BTreeSet<(String, String)>>);

impl Tried {
    /// Whether no worker has tried this for the key before.
    pub(super) fn is_first(&self, key: &str, what: &str) -> bool {
        let mut tried = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tried.insert((key.to_owned(), what.to_owned()))
    }
}

/// Registers an action that is not retried by itself.
pub(super) fn register(flo: &Flo, action: &str) {
    let limits = ["--max-retries", "0", "--timeout-ms", "10000"];
    let _ = flo.text(&[&["action", "register", action], &limits[..]].concat());
}

/// Like [`work`], with a handler that knows the session and what all workers have tried.
pub(super) async fn work_and_try<F>(
    session: Session,
    actions: &'static [&'static str],
    handle: impl Fn(Session, String, Arc<Tried>, ActionContext) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Handled> + Send + 'static,
{
    let noting = session.clone();
    let tried = Arc::<Tried>::default();
    let handler: Handler = Arc::new(move |worker, context| {
        handle(noting.clone(), worker, tried.clone(), context).boxed()
    });
    work(session, actions, handler).await;
}

/// Runs workers for the actions until the session stops, whatever happens to the nodes.
pub(super) async fn work(session: Session, actions: &'static [&'static str], handler: Handler) {
    let workers = (0..WORKERS).map(|number| {
        let name = format!("{}-{number}", session.workload);
        let nodes = session.nodes.turned(number);
        let (session, handler) = (session.clone(), handler.clone());
        async move {
            while !session.stop.is_cancelled() {
                let mut builder = Worker::builder(nodes.client())
                    .worker_id(name.clone())
                    .concurrency(CONCURRENCY);
                for action in actions {
                    let (name, handler) = (name.clone(), handler.clone());
                    builder = builder.action(*action, move |context| {
                        handler(name.clone(), context).boxed()
                    });
                }
                let worker = builder.build().expect("the settings are valid");
                let stop = session.stop.clone();
                // A worker that the cluster has rejected registers again.
                let _ = worker.run(async move { stop.cancelled().await }).await;
            }
        }
    });
    join_all(workers).await;
}

/// A handler that fails the first attempt for each key and name, so that retries happen, and records each success as
/// `execute`. The input has a key and a name; the name is the output.
pub(super) async fn fail_first(
    session: Session,
    worker: String,
    tried: Arc<Tried>,
    context: ActionContext,
) -> Handled {
    #[derive(Deserialize)]
    struct Input {
        key: String,
        name: String,
    }
    let Input { key, name } = context.json()?;
    let invoked_us = session.recorder.now();
    tokio::time::sleep(Duration::from_millis(20)).await;
    if tried.is_first(&key, &name) {
        return Err(HandlerError::retry("the first attempt fails"));
    }
    let input = json!({"key": key, "name": name, "task": context.task_id(), "worker": worker});
    note_execution(&session, input, invoked_us);
    Ok(ActionResult::success(json!(name)))
}

/// Records as `execute` that a worker has executed an action, which began at this time.
pub(super) fn note_execution(session: &Session, input: Value, invoked_us: Moment) {
    let invocation = Invocation {
        name: "execute",
        input,
        invoked_us,
    };
    session.note(invocation, Value::Null);
}

/// How often workers have executed what, as [`note_execution`] has recorded: by the key, and by another field of the input.
pub(super) fn executions(
    history: &History,
    workload: &str,
    field: &str,
) -> BTreeMap<(String, String), u64> {
    let mut counts = BTreeMap::new();
    for operation in history.of(workload).filter(|one| one.name == "execute") {
        let text = |name: &str| {
            operation.input[name]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        *counts.entry((text("key"), text(field))).or_default() += 1;
    }
    counts
}
