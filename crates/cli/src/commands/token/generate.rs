//! `flo token generate`.

use crate::commands::generated::GeneratedFile;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_server::{ensure_bootstrap_token, generate_bootstrap_token};
use serde::Serialize;
use std::path::PathBuf;

const EXAMPLE: &str = "\
Examples:
  flo token generate bootstrap.token
  flo server --bootstrap-token-file bootstrap.token";

/// Generate the bootstrap token of a new cluster
///
/// This command does not contact a cluster. Copy the file to all first members, and start them with --bootstrap-token-file. The
/// token has the role cluster-admin.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Generate {
    /// File to write, readable by its owner only; an existing file is left unchanged. Without FILE, the token is printed
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct BootstrapTokenView {
    secret: String,
}

impl Generate {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let Some(file) = self.file else {
            let view = BootstrapTokenView {
                secret: generate_bootstrap_token(),
            };
            return session.output.value(&view, |view| view.secret.clone());
        };
        let created = ensure_bootstrap_token(&file).map_err(Failure::secret_file)?;
        let note = "; its token may be that of another cluster";
        GeneratedFile { file, created }.say(session, "bootstrap token", note)
    }
}
