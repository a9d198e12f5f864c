//! Workers: the leader's open polls, the stream that serves one, and the service in front (A22).

mod assignment;
mod forward;
mod hub;
mod poll;
mod records;
mod reports;
mod service;
mod session;

pub(crate) use hub::{ActionKey, Hub};
pub(crate) use poll::{ToWorker, WorkerKey};
pub(crate) use service::Workers;
