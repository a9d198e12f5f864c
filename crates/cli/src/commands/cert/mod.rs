//! `flo cert`.

mod authority;
mod dev;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Make development certificates for TLS
#[derive(Debug, Subcommand)]
pub(crate) enum CertCommand {
    Dev(dev::Dev),
}

impl CertCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Dev(dev) => dev.run(session),
        }
    }
}
