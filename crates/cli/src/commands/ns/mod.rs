//! `flo ns`.

mod create;
mod delete;
mod list;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// List, create and delete namespaces
#[derive(Debug, Subcommand)]
pub(crate) enum NsCommand {
    Create(create::Create),
    List(list::List),
    Delete(delete::Delete),
}

impl NsCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::List(list) => list.run(session).await,
            Self::Delete(delete) => delete.run(session).await,
        }
    }
}
