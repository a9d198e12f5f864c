//! `flo stream group`.

mod create;
mod delete;
mod info;
mod list;
mod pending;

use crate::failure::Failure;
use crate::session::Session;
use clap::{Args, Subcommand};

/// Manage the consumer groups of a stream
#[derive(Debug, Subcommand)]
pub(crate) enum GroupCommand {
    Create(create::Create),
    List(list::List),
    Info(info::Info),
    Pending(pending::Pending),
    Delete(delete::Delete),
}

/// Selects a group.
#[derive(Debug, Args)]
struct Named {
    /// Name of the stream
    stream: String,

    /// Name of the group
    group: String,
}

impl GroupCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::List(list) => list.run(session).await,
            Self::Info(info) => info.run(session).await,
            Self::Pending(pending) => pending.run(session).await,
            Self::Delete(delete) => delete.run(session).await,
        }
    }
}
