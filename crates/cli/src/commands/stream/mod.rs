//! `flo stream`.

mod append;
mod create;
mod delete;
mod group;
mod info;
mod list;
mod read;
mod trim;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Append to streams, read them, and consume them in groups
#[derive(Debug, Subcommand)]
pub(crate) enum StreamCommand {
    Create(create::Create),
    Append(append::Append),
    Read(read::Read),
    Info(info::Info),
    List(list::List),
    Trim(trim::Trim),
    Delete(delete::Delete),
    #[command(subcommand)]
    Group(group::GroupCommand),
}

impl StreamCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::Append(append) => append.run(session).await,
            Self::Read(read) => read.run(session).await,
            Self::Info(info) => info.run(session).await,
            Self::List(list) => list.run(session).await,
            Self::Trim(trim) => trim.run(session).await,
            Self::Delete(delete) => delete.run(session).await,
            Self::Group(group) => group.run(session).await,
        }
    }
}
