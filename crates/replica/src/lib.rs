//! Everything that keeps a member consistent: Raft, log, state, snapshots, peer network.
//!
//! A [`Replica`] forwards commands from any node to the leader, which packs them into entries of
//! the [`log`]; every member applies the committed entries to its [`state`] with the engine, one
//! write per entry, and notifies subscribers of what was applied. It never looks into a command.
//!
//! Simulation and tests replace these traits (design rule 15): [`Clock`], [`Transport`] with
//! [`PeerCalls`], [`Storage`] with [`LogDevice`] and [`StateStore`], [`Execution`].

mod attempt;
mod backup;
mod batch;
mod clock;
mod cluster;
mod completeness;
mod control;
mod core;
mod direct_io;
mod environment;
mod execution;
mod fatal;
mod framing;
mod gauges;
mod identity;
mod inspection;
mod lifecycle;
mod log;
mod membership;
mod network;
mod proposal;
mod raft;
mod read;
mod replica;
mod rocks_storage;
mod running;
mod snapshot_maker;
mod stagger;
mod start_error;
mod startup;
mod state;
mod storage;
mod submit;
mod tasks;
#[cfg(test)]
mod testing;
mod tuning;
mod view;

pub use attempt::SubmitError;
pub use backup::{
    Backup, BackupError, BackupFault, BackupHeader, BackupOrigin, BackupSummary, OfflineError,
    RestoreError, RestoredMember, TableSummary, backup_directory, restore, verify,
};
pub use batch::OFFERS_BYTES_MAX;
pub use clock::{Clock, SystemClock};
pub use cluster::change::{ChangeError, ChangeRefusal, ClusterChange};
pub use cluster::disk_pressure::DiskPressure;
pub use cluster::formation::{FormError, Formation, FormedCluster};
pub use cluster::leader_contact::Standstill;
pub use cluster::leadership::{Leader, Leadership};
pub use cluster::status::{DigestStatus, NodeStatus, Role, Status};
pub use cluster::timing::TimingMismatch;
pub use environment::{Environment, NoObserver, NoOffers, Observer, OfferSource};
pub use execution::{BlockingPool, Execution, JobKind, Pace};
pub use fatal::FatalError;
pub use gauges::{FollowerGauge, Gauges};
pub use inspection::{
    InspectError, Inspector, NoInspector, Pending, PendingClass, PendingCommands, PendingInstall,
};
pub use log::contents::LogContents;
pub use log::device::{DeviceError, Durability, Fact, LogDevice, Operation, RecordVisitor};
pub use log::record::RecordError;
pub use log::store::LogOpenError;
pub use network::caller::{Caller, CallerCertificate, host_of};
pub use network::calls::{PeerCalls, PeerError, PeerFuture, PeerResult, Requests, Responses};
pub use network::forward::QUEUE_BYTES_MAX as FORWARD_BYTES_MAX;
pub use network::host_services::{HostCallSender, HostServices, HostServicesHandle};
pub use network::local::HOME_GROUP_ID;
pub use network::member_secret::{
    MemberRefusal, MemberSecret, MemberSecretInterceptor, MemberState,
};
pub use network::protocol;
pub use network::snapshots::SNAPSHOTS_BYTES_MAX;
pub use network::sockets::{Accepted, Arrivals, PlainSockets, Sockets};
pub use network::transport::{GrpcTransport, Transport};
pub use read::ReadError;
pub use replica::{Config, Counters, Replica};
pub use rocks_storage::RocksStorage;
pub use start_error::StartError;
pub use state::feed::{AppliedBatch, Notice, Subscription};
pub use state::rows::{Divergence, RowError};
pub use state::store::{Incoming, SharedReader, StateStore};
pub use storage::{DirectoryLock, DiskSpace, Storage, StorageError, StoreFigures};
pub use tuning::Tuning;
pub use view::View;
