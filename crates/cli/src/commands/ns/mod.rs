//! `flo ns`.

mod create;
mod delete;
mod list;
mod quota;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// List, create and delete namespaces, and set their quotas
#[derive(Debug, Subcommand)]
pub(crate) enum NsCommand {
    Create(create::Create),
    List(list::List),
    Delete(delete::Delete),
    #[command(subcommand)]
    Quota(quota::QuotaCommand),
}

impl NsCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::List(list) => list.run(session).await,
            Self::Delete(delete) => delete.run(session).await,
            Self::Quota(quota) => quota.run(session).await,
        }
    }
}
