//! The worker SDK: runs handlers for the tasks of actions.
//!
//! A [`Worker`] registers itself and missing actions, keeps one stream to the leader, offers its
//! free slots, and runs a handler for each task (A22). While a handler runs, the worker touches the
//! lease at a third of its length (A4a). The worker repeats a handler's report until the cluster
//! has responded; the task token makes that safe (design rule 9).
//!
//! ```no_run
//! use flotilla_client::{ActionContext, ActionResult, Client, HandlerError, Worker};
//! use serde_json::{Value, json};
//!
//! async fn review(context: ActionContext) -> Result<ActionResult, HandlerError> {
//!     let order: Value = context.json()?;
//!     match order["amount"].as_f64() {
//!         None => Err(HandlerError::non_retryable("expected an amount, but it is missing")),
//!         Some(amount) if amount < 100.0 => Ok(ActionResult::named("approved", order)),
//!         Some(_) => Ok(ActionResult::success(json!({"review": "manual"}))),
//!     }
//! }
//!
//! # async fn example(client: Client) -> Result<(), flotilla_client::ClientError> {
//! let worker = Worker::builder(client).concurrency(5).action("review-order", review).build()?;
//! worker.run(async { drop(tokio::signal::ctrl_c().await) }).await
//! # }
//! ```
//!
//! Internally, three parts have one responsibility each. The outbox keeps the messages to send,
//! and the ledger of tasks and slots that all workers have, without I/O. A job runs the handler of a
//! task. The service moves messages between the two and the stream, and reopens a broken stream.

mod announce;
mod builder;
mod callbacks;
mod contact;
mod context;
mod handler;
mod job;
mod lease;
mod link;
mod outbox;
mod report;
mod result;
mod service;
mod session;
mod shutdown;

pub(crate) use announce::announce_drain;
pub(crate) use builder::host;
pub use builder::{Worker, WorkerBuilder};
pub(crate) use callbacks::Callbacks;
pub(crate) use contact::Contact;
pub use context::ActionContext;
pub use handler::{FailKind, HandlerError};
pub use result::ActionResult;
pub(crate) use shutdown::live_until;
