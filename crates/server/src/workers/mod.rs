//! Workers: the leader's open polls, the stream that serves one, and the service in front (A22).

mod assignment;
mod channel;
mod demand;
mod forward;
mod greeting;
mod hub;
mod long_poll;
mod poll;
mod polls;
mod records;
mod registry;
mod reports;
mod service;
mod session;
mod voice;

pub(crate) use demand::Looked;
pub(crate) use hub::Hub;
pub(crate) use poll::{ActionKey, ToWorker, WorkerKey};
pub(crate) use polls::Parcel;
pub(crate) use service::Workers;
