//! Workers: the gRPC stream and the long poll that serve the leader's open polls, and the worker service (A22).

mod assignment;
mod forward;
mod handshake;
mod long_poll;
mod outbox;
mod records;
mod registry;
mod reports;
mod service;
mod session;

pub(crate) use service::Workers;
