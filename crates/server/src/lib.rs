//! A Flotilla node: the composition root, and the only crate that knows both the wire and the engine.
//!
//! A request goes one way. `edge` counts it and names the leader in its reply; a service checks it
//! with `request` and makes it a command or a read; `gateway` submits the command to the replica or
//! reads what is applied; `convert` makes what comes back a message, and `errors` whatever went wrong
//! a status. `http` serves reports to those who have no gRPC, and probes and metrics to those who watch over
//! the node. `watch` wakes those who wait for something to be applied.
//!
//! Beside that live the `workers` with their open polls, the leader's `drivers`, and the `embedded`
//! workers that run WASM actions.

mod config;
mod context;
mod convert;
mod deadline;
mod drivers;
mod edge;
mod embedded;
mod errors;
mod faults;
mod gateway;
mod health;
mod http;
mod limits;
mod metrics;
mod readiness;
mod request;
mod schemas;
mod server;
mod services;
mod span;
#[cfg(test)]
mod testing;
mod watch;
mod workers;

pub use config::{ConfigInvalid, Peer, ServerConfig};
pub use errors::ErrorCode;
pub use metrics::{METRICS, Metric, MetricKind};
pub use server::{Server, ServerError};
