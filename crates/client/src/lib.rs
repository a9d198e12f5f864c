//! The Rust client and worker SDK.
//!
//! [`Client`] calls a cluster through a list of nodes: it fails over, calls the leader directly
//! once it knows it, and retries what is safe to retry within the caller's deadline (design rule
//! 9). [`Worker`] runs handlers for the tasks of actions, [`StreamWorker`] for the records of
//! streams.
//!
//! ```no_run
//! use flotilla_client::{Client, ClientOptions, v1::StartRunRequest};
//!
//! # async fn example() -> Result<(), flotilla_client::ClientError> {
//! let client = Client::connect(ClientOptions {
//!     endpoints: vec!["127.0.0.1:9000".into(), "127.0.0.1:9010".into()],
//!     ..ClientOptions::default()
//! })?;
//! let started = client
//!     .start_run(StartRunRequest {
//!         workflow: "process-order".into(),
//!         input: r#"{"order":1}"#.into(),
//!         ..StartRunRequest::default()
//!     })
//!     .await?;
//! println!("{}", started.run_id);
//! # Ok(())
//! # }
//! ```

mod backoff;
mod backup;
mod call;
mod client;
mod cluster_clock;
mod code;
mod dialer;
mod error;
mod failure;
mod finding;
mod health;
mod hedges;
mod leaders;
mod names;
mod nodes;
mod options;
mod pace;
mod period;
mod requests;
mod retry;
mod services;
pub mod stream_worker;
mod tls;
mod watch;
pub mod worker;

pub use client::Client;
pub use code::ClientCode;
pub use error::{ClientError, ErrorKind, Violation};
pub use flotilla_api::token::{ApiToken, TokenSecret};
pub use flotilla_api::v1;
pub use names::PublishedName;
pub use options::ClientOptions;
pub use requests::new_request_id;
pub use stream_worker::{RecordError, StreamContext, StreamWorker, StreamWorkerBuilder};
pub use tls::{TlsIdentity, TlsOptions};
pub use watch::WatchUpdate;
pub use worker::{ActionContext, ActionResult, FailKind, HandlerError, Worker, WorkerBuilder};
