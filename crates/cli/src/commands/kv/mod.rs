//! `flo kv`.

mod delete;
mod get;
mod scan;
mod set;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Read and write the key-value store
#[derive(Debug, Subcommand)]
pub(crate) enum KvCommand {
    Get(get::Get),
    Set(set::Set),
    Delete(delete::Delete),
    Scan(scan::Scan),
}

impl KvCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Get(get) => get.run(session).await,
            Self::Set(set) => set.run(session).await,
            Self::Delete(delete) => delete.run(session).await,
            Self::Scan(scan) => scan.run(session).await,
        }
    }
}
