//! An input that shows a fault.

use flotilla_engine::codec::fingerprint;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

/// An input for which a property of its target does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The target's name.
    pub target: &'static str,
    /// The input.
    pub input: Vec<u8>,
    /// The message of the failure.
    pub reason: String,
}

impl Failure {
    /// Writes the input into the folder, which is created if necessary, and returns the file's path. The same input has
    /// the same name.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, folder: &Path) -> io::Result<PathBuf> {
        fs::create_dir_all(folder)?;
        let name = format!("{}-{:016x}", self.target, fingerprint(&self.input));
        let path = folder.join(name);
        fs::write(&path, &self.input)?;
        Ok(path)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "`{}` fails on an input of {} bytes: {}",
            self.target,
            self.input.len(),
            self.reason
        )
    }
}
