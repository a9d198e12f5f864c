//! `flo keyring`.

mod generate;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Make the secret keys that all nodes of a cluster share
#[derive(Debug, Subcommand)]
pub(crate) enum KeyringCommand {
    Generate(generate::Generate),
}

impl KeyringCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Generate(generate) => generate.run(session),
        }
    }
}
