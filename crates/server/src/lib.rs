//! A Flotilla node: the composition root, and the only crate that knows both the wire and the
//! engine.
//!
//! A request passes these modules in order. `middleware` counts it and names the leader in its
//! response; a service validates it with `request` and turns it into a command or a read; `gateway`
//! submits the command to the replica or reads the applied state; `convert` turns the result into a
//! message, and `errors` turns a failure into a status. `http` serves reports to clients without
//! gRPC, and probes and metrics to supervisors. `tls` secures the connections if the node has
//! certificates. `watch` wakes callers that wait until something is applied.
//!
//! Besides these, a node serves the `workers`, starts the leader's parts (`flotilla_leader`), and has the `embedded`
//! workers that run WASM actions, whose `modules` are compiled within bounds.

mod access;
mod config;
mod connections;
mod context;
mod convert;
mod deadline;
mod embedded;
mod errors;
mod faults;
mod gateway;
mod health;
mod http;
mod inspect;
mod keyring;
mod last_fault;
mod limits;
mod members;
mod memory;
mod metrics;
mod middleware;
mod modules;
mod namespace_permits;
mod oidc;
mod only_grpc;
mod quota_refusals;
mod readiness;
mod receiving;
mod request;
mod secret_file;
mod sending;
mod server;
mod services;
mod slow_commands;
mod span;
#[cfg(test)]
mod testing;
mod tls;
mod traces;
mod watch;
mod workers;

/// Backup files: what can be done with them without a cluster.
pub mod backup {
    pub use flotilla_replica::{
        BackupFault, BackupHeader, BackupOrigin, BackupSummary, OfflineError, RestoreError,
        RestoredMember, TableSummary, backup_directory, restore, verify,
    };
}

pub use access::{
    AccessRecovery, AccessRecoveryRequest, ensure_bootstrap_token, generate_bootstrap_token,
};
pub use config::{
    ConfigInvalid, ModuleCompiler, OidcConfigInvalid, OidcIssuer, Peer, ServerConfig,
};
pub use errors::ErrorCode;
pub use flotilla_engine::AccessMode;
pub use http::{LIVE_PATH, METRICS_PATH, READY_PATH, openapi};
pub use keyring::{ensure_keyring_file, generate_keyring};
pub use limits::STOP_TIME;
pub use metrics::{METRICS, Metric, MetricKind};
pub use oidc::{KeyUrlInvalid, OidcKeysInvalid};
pub use secret_file::{SecretFileError, SecretFileKind};
pub use server::{Server, ServerError};
pub use tls::TlsInvalid;
