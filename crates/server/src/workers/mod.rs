//! Workers: the leader's open polls, the gRPC stream and the long poll that serve them, and the
//! worker service (A22).

mod assignment;
mod channel;
mod forward;
mod handshake;
mod hub;
mod long_poll;
mod outbox;
mod pending_actions;
mod poll;
mod polls;
mod records;
mod registry;
mod reports;
mod service;
mod session;

pub(crate) use hub::Hub;
pub(crate) use pending_actions::ScanResult;
pub(crate) use poll::{ActionKey, Revocation, ToWorker, WorkerKey};
pub(crate) use polls::Delivery;
pub(crate) use service::Workers;
