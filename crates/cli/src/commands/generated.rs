//! The output of commands that generate a file with a secret.

use crate::failure::Failure;
use crate::session::Session;
use serde::Serialize;
use std::path::PathBuf;

/// The file.
#[derive(Debug, Serialize)]
pub(super) struct GeneratedFile {
    pub(super) file: PathBuf,
    /// Whether this command wrote it.
    pub(super) created: bool,
}

impl GeneratedFile {
    /// Prints whether the file was written or already existed. `note` is added in the second case.
    pub(super) fn say(&self, session: &Session, noun: &str, note: &str) -> Result<(), Failure> {
        session.output.value(self, |view| {
            let file = view.file.display();
            match view.created {
                true => format!("{noun} in {file}"),
                false => format!("kept {file}, which exists{note}"),
            }
        })
    }
}
