//! The file with the bootstrap token of a new cluster (X4).

use super::api_token::ApiToken;
use flotilla_api::token::TokenSecret;
use flotilla_engine::ids::TokenId;
use flotilla_engine::{BootstrapToken, SecretHash};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The maximum size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 4_096;
/// The file of a node that is alone in its cluster, in its data directory.
const OWN_FILE: &str = "bootstrap-token";

/// Why there is no bootstrap token for a new cluster that is closed.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapTokenError {
    /// The file cannot be read.
    #[error("expected to read the bootstrap token of the new cluster from {}, but that failed", .0.display())]
    Unreadable(PathBuf, #[source] io::Error),
    /// The file does not contain a valid token.
    #[error("expected {} to contain one API token, the bootstrap token of the new cluster, but it does not", .0.display())]
    Malformed(PathBuf),
    /// The file of a new token cannot be written.
    #[error("expected to write the bootstrap token of the new cluster to {}, but that failed", .0.display())]
    Unwritable(PathBuf, #[source] io::Error),
}

/// The text of a new token, for the file on all first members of a cluster.
#[must_use]
pub fn generate_bootstrap_token() -> String {
    let drawn = TokenSecret::draw();
    let mut secret = [0; 32];
    secret.copy_from_slice(&drawn.sha256());
    let id = TokenId::of_secret(SecretHash(secret));
    drawn.into_token(&id.to_string()).expose().to_owned()
}

/// Reads the token from the file.
pub(crate) fn read(file: &Path) -> Result<BootstrapToken, BootstrapTokenError> {
    let unreadable = |error| BootstrapTokenError::Unreadable(file.to_owned(), error);
    let malformed = || BootstrapTokenError::Malformed(file.to_owned());
    if fs::metadata(file).map_err(unreadable)?.len() > FILE_BYTES_MAX {
        return Err(malformed());
    }
    let text = fs::read_to_string(file).map_err(unreadable)?;
    let token = ApiToken::parse(text.trim()).ok_or_else(malformed)?;
    Ok(BootstrapToken {
        id: token.id,
        secret: token.secret,
    })
}

/// The token of a node that is alone in its cluster: from the file in its data directory, which is written if it does not
/// exist.
pub(crate) fn of_single_node(data_directory: &Path) -> Result<BootstrapToken, BootstrapTokenError> {
    let file = data_directory.join(OWN_FILE);
    ensure_bootstrap_token(&file)?;
    tracing::info!(
        file = %file.display(),
        "the cluster is new and closed; this file has the token that administers it"
    );
    read(&file)
}

/// Writes a new token to the file, unless the file exists. Only its owner can read it.
///
/// # Errors
/// [`BootstrapTokenError::Unwritable`].
pub fn ensure_bootstrap_token(file: &Path) -> Result<(), BootstrapTokenError> {
    if file.exists() {
        return Ok(());
    }
    write(file).map_err(|error| BootstrapTokenError::Unwritable(file.to_owned(), error))
}

fn write(file: &Path) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    // Written to a draft and renamed, so that a crash never leaves a partial file.
    let draft = file.with_extension("draft");
    if draft.exists() {
        fs::remove_file(&draft)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut written = options.open(&draft)?;
    writeln!(written, "{}", generate_bootstrap_token())?;
    written.sync_all()?;
    fs::rename(&draft, file)?;
    match file.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_single_node_keeps_the_token_that_it_has_written() {
        let data = tempfile::tempdir().expect("a directory");
        let token = of_single_node(data.path()).expect("a token");
        let file = data.path().join(OWN_FILE);
        let mode = fs::metadata(&file).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(of_single_node(data.path()).expect("the same"), token);
        assert_eq!(read(&file).expect("the same"), token);
    }

    #[test]
    fn a_file_without_a_token_is_refused() {
        let data = tempfile::tempdir().expect("a directory");
        let file = data.path().join("token");
        let refused = || read(&file).expect_err("there is no token").to_string();
        assert!(refused().contains("that failed"), "{}", refused());
        for text in ["", "flo_something", &"x".repeat(5_000)] {
            fs::write(&file, text).expect("room");
            assert!(refused().contains("it does not"), "{}", refused());
        }
        fs::write(&file, format!("  {}\n", generate_bootstrap_token())).expect("room");
        assert!(read(&file).is_ok());
    }
}
