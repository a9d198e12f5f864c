//! `flo token`.

mod create;
mod generate;
mod list;
mod revoke;
mod rotate;
mod show;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Manage API tokens
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    Create(create::Create),
    Generate(generate::Generate),
    List(list::List),
    Show(show::Show),
    Rotate(rotate::Rotate),
    Revoke(revoke::Revoke),
}

impl TokenCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(session).await,
            Self::Generate(generate) => generate.run(session),
            Self::List(list) => list.run(session).await,
            Self::Show(show) => show.run(session).await,
            Self::Rotate(rotate) => rotate.run(session).await,
            Self::Revoke(revoke) => revoke.run(session).await,
        }
    }
}
