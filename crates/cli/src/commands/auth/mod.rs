//! `flo auth`.

mod bind;
mod bindings;
mod block;
mod blocks;
mod changed;
mod disable;
mod dry_run;
mod enable;
mod mode;
mod recover;
mod unbind;
mod unblock;
mod whoami;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Show your identity, give client certificates rights, and open or close the cluster
#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    Whoami(whoami::WhoAmI),
    Enable(enable::Enable),
    Disable(disable::Disable),
    Recover(recover::Recover),
    Bind(bind::Bind),
    Unbind(unbind::Unbind),
    Bindings(bindings::Bindings),
    Block(block::Block),
    Unblock(unblock::Unblock),
    Blocks(blocks::Blocks),
}

impl AuthCommand {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Whoami(whoami) => whoami.run(session).await,
            Self::Enable(enable) => enable.run(session).await,
            Self::Disable(disable) => disable.run(session).await,
            Self::Recover(recover) => recover.run(session).await,
            Self::Bind(bind) => bind.run(session).await,
            Self::Unbind(unbind) => unbind.run(session).await,
            Self::Bindings(bindings) => bindings.run(session).await,
            Self::Block(block) => block.run(session).await,
            Self::Unblock(unblock) => unblock.run(session).await,
            Self::Blocks(blocks) => blocks.run(session).await,
        }
    }
}
