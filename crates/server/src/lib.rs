//! A Flotilla node: the composition root, and the only crate that knows both the wire and the engine.
//!
//! A request goes one way. `edge` counts it and names the leader in its reply; a service checks it
//! with `request` and makes it a command or a read; `gateway` submits the command to the replica or
//! reads what is applied; `convert` makes what comes back a message, and `errors` whatever went wrong
//! a status. `http` serves reports to those who have no gRPC, and probes and metrics to those who watch over
//! the node. `tls` is what connections are made and taken with, where a node has certificates. `watch` wakes those who wait for something to be applied.
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
mod tls;
mod traces;
mod watch;
mod workers;

/// Backups as files: what is done with them without a cluster.
pub mod backup {
    pub use flotilla_replica::{
        BackupFault, BackupHeader, BackupOrigin, BackupSummary, OfflineError, RestoreError,
        RestoredMember, TableSummary, backup_directory, restore, verify,
    };
}

pub use config::{ConfigInvalid, Peer, ServerConfig};
pub use errors::ErrorCode;
pub use http::{LIVE_PATH, METRICS_PATH, READY_PATH};
pub use limits::STOP_TIME;
pub use metrics::{METRICS, Metric, MetricKind};
pub use server::{Server, ServerError};
pub use tls::TlsInvalid;
