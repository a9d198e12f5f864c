//! The stream worker SDK: runs a handler for each record of a consumer group.
//!
//! A [`StreamWorker`] joins the group, takes records when it has free slots, and runs the handler
//! for each. A record is acknowledged when the handler returns, and returned when the handler
//! fails, panics or takes too long (A31). While a handler runs, the worker touches the record at a
//! third of the group's ack timeout. Processing is at least once: a handler may see a record again.
//!
//! ```no_run
//! use flotilla_client::{Client, RecordError, StreamContext, StreamWorker};
//! use serde_json::Value;
//!
//! async fn process(context: StreamContext) -> Result<(), RecordError> {
//!     let event: Value = context.json()?;
//!     println!("{} {event}", context.stream_id());
//!     Ok(())
//! }
//!
//! # async fn example(client: Client) -> Result<(), flotilla_client::ClientError> {
//! let worker = StreamWorker::builder(client, "events", process)
//!     .group("processors")
//!     .concurrency(5)
//!     .build()?;
//! worker.run(async { drop(tokio::signal::ctrl_c().await) }).await
//! # }
//! ```
//!
//! In an ordered group (exclusive or key-shared), the worker takes one record at a time, so that a
//! failed record is redelivered before the next one of its partition. More workers, up to one per
//! partition, increase the throughput of such a group.

mod builder;
mod context;
mod error;
mod member;
mod record;
mod service;

pub use builder::{StreamWorker, StreamWorkerBuilder};
pub use context::StreamContext;
pub use error::RecordError;
