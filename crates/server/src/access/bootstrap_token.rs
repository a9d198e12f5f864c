//! The file with the bootstrap token of a new cluster (X4).

use super::api_token::ApiToken;
use crate::secret_file::{self, SecretFileError, SecretFileKind};
use flotilla_api::token::TokenSecret;
use flotilla_engine::ids::TokenId;
use flotilla_engine::{BootstrapToken, SecretHash};
use std::path::Path;

/// The file of a node that is alone in its cluster, in its data directory.
const OWN_FILE: &str = "bootstrap-token";

/// The file with the bootstrap token.
pub(super) static BOOTSTRAP_TOKEN_FILE: SecretFileKind = SecretFileKind {
    key: "bootstrap_token_file",
    needed_by: "a new closed cluster with several first members",
    name: "the bootstrap token of the new cluster",
    secret: "the bootstrap token",
    form: "one API token, the bootstrap token of the new cluster",
    making: "`flo token generate FILE` generates the token; copy the file to all first members",
    repair: "delete the file, generate the token with `flo token generate FILE`, and copy the file to all first members",
};

/// The text of a new token, for the file on all first members of a cluster.
#[must_use]
pub fn generate_bootstrap_token() -> String {
    generate().0
}

/// A new token: its text, and what the state keeps of it.
pub(super) fn generate() -> (String, BootstrapToken) {
    let drawn = TokenSecret::draw();
    let mut secret = [0; 32];
    secret.copy_from_slice(&drawn.sha256());
    let secret = SecretHash(secret);
    let id = TokenId::of_secret(secret);
    let text = drawn.into_token(&id.to_string()).expose().to_owned();
    (text, BootstrapToken { id, secret })
}

/// Reads the token from the file.
pub(crate) fn read(file: &Path) -> Result<BootstrapToken, SecretFileError> {
    secret_file::read(&BOOTSTRAP_TOKEN_FILE, file, |text| {
        let token = ApiToken::parse(text.trim()).ok_or_else(|| "it does not".to_owned())?;
        Ok(BootstrapToken {
            id: token.id,
            secret: token.secret,
        })
    })
}

/// The token of a node that is alone in its cluster: from the file in its data directory, which is written if it does not
/// exist.
pub(crate) fn of_single_node(data_directory: &Path) -> Result<BootstrapToken, SecretFileError> {
    let file = data_directory.join(OWN_FILE);
    ensure_bootstrap_token(&file)?;
    let token = read(&file)?;
    tracing::info!(
        file = %file.display(),
        "the cluster is new and closed; this file has the token that administers it"
    );
    Ok(token)
}

/// Writes a new token to the file, unless the file exists. Only its owner can read it. Returns whether it was written.
///
/// # Errors
/// [`SecretFileError::Unwritable`].
pub fn ensure_bootstrap_token(file: &Path) -> Result<bool, SecretFileError> {
    secret_file::ensure(&BOOTSTRAP_TOKEN_FILE, file, || {
        format!("{}\n", generate_bootstrap_token())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
        ensure_bootstrap_token(&file).expect("room");
        for text in ["", "flo_something", &"x".repeat(5_000)] {
            fs::write(&file, text).expect("room");
            assert!(refused().contains("it does not"), "{}", refused());
        }
        fs::write(&file, format!("  {}\n", generate_bootstrap_token())).expect("room");
        assert!(read(&file).is_ok());
    }
}
