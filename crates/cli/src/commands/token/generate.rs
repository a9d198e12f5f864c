//! `flo token generate`.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_server::generate_bootstrap_token;
use serde::Serialize;

const EXAMPLE: &str = "\
Example:
  (umask 077; flo token generate > bootstrap.token)
  flo server --access closed --bootstrap-token-file bootstrap.token";

/// Generate the bootstrap token of a new cluster
///
/// This command does not contact a cluster. Write the token to a file, copy the file to all first members, and start them with
/// --bootstrap-token-file. The token has the role cluster-admin.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Generate {}

#[derive(Debug, Serialize)]
struct BootstrapTokenView {
    secret: String,
}

impl Generate {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let view = BootstrapTokenView {
            secret: generate_bootstrap_token(),
        };
        session.output.value(&view, |view| view.secret.clone())
    }
}
