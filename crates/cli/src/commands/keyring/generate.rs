//! `flo keyring generate`.

use crate::commands::generated::GeneratedFile;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_server::{ensure_keyring_file, generate_keyring};
use serde::Serialize;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  flo keyring generate keyring
  flo server --keyring-file keyring

To replace the key, on all nodes and one step after the other:
  1. Append the output of `flo keyring generate` to the file.
  2. Move that line to the top: from then on, this key is the active one.
  3. Delete the old line once no task is out that was assigned before.
A node uses a changed file within seconds, without a restart.";

/// Generate a keyring: a secret key that all nodes of a cluster share
///
/// This command does not contact a cluster. Copy the file to all nodes, and start them with --keyring-file. A closed cluster
/// needs it: nodes authenticate the tokens of tasks with it. It is in no log, snapshot or backup, so keep a copy.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Generate {
    /// File to write, readable by its owner only; an existing file is left unchanged. Without FILE, the line of a key is printed
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct KeyringView {
    keyring: String,
}

impl Generate {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let Some(file) = self.file else {
            let keyring = generate_keyring().trim_end().to_owned();
            return session
                .output
                .value(&KeyringView { keyring }, |view| view.keyring.clone());
        };
        let created = ensure_keyring_file(&file).map_err(Failure::secret_file)?;
        GeneratedFile { file, created }.say(session, "keyring", "")
    }
}
