//! A Flotilla node: the composition root, and the only crate that knows both the wire and the engine.
//!
//! A request goes one way: [`services`](self) check it ([`request`]) and turn it into a command or a
//! read; the `gateway` submits the command to the replica or reads the applied state; `convert` turns
//! what comes back into messages, and `errors` whatever went wrong into a status. Beside it live the
//! `workers` with their open polls, the leader's `drivers`, and the `embedded` WASM workers.

mod config;
mod context;
mod convert;
mod deadline;
mod drivers;
mod edge;
mod embedded;
mod errors;
mod gateway;
mod health;
mod limits;
mod request;
mod schemas;
mod server;
mod services;
mod watch;
mod workers;

pub use config::{ConfigInvalid, Peer, ServerConfig};
pub use server::{Server, ServerError};
