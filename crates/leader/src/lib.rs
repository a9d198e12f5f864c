//! What only the leader does: it keeps the open polls of workers, and submits what is due by time or by state.
//!
//! Each node has a [`Hub`], the source of offers to workers, and [`start`]s the leader's parts, which wait until the
//! node leads. The pump passes on what the node applies. The drivers act on what they read from the tables, so a new
//! leader finds everything there. A [`Session`] is a worker's poll, independent of the transport.
//!
//! The crate uses neither gRPC nor threads, so the simulation runs it unmodified.

mod bug;
mod context;
mod drivers;
mod error;
mod hub;
mod limits;
mod observer;
mod poller;
mod pump;
mod schemas;
mod session;
mod term;
#[cfg(test)]
mod testing;

pub mod channel;

pub use bug::PlantedBug;
pub use context::{Context, start};
pub use error::Error;
pub use hub::{ActionKey, Hub, PollClosed, Request, Revocation, ToWorker, WorkerKey};
pub use observer::{NoObserver, Observer};
pub use poller::{LeasedTask, Poller};
pub use schemas::{Schema, Schemas};
pub use session::Session;
