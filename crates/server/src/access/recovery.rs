//! Recovery of access with the help of the data directory (X4).
//!
//! An operator who can write to the data directory of a node already controls its state. So a file there with the digest of a
//! token suffices to make that token administer the cluster.

use super::bootstrap_token::generate;
use crate::context::Context;
use crate::errors::Refusal;
use crate::secret_file;
use flotilla_engine::ids::TokenId;
use flotilla_engine::{BootstrapToken, Command, RecoverAccess, SecretHash, reply};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, sleep};

/// The name of a request's file in the data directory begins with this; the id of the token follows.
const PREFIX: &str = "access-recovery-";
/// The extension of a request that a node has carried out.
const DONE: &str = "done";
/// The extension of a request that a node has refused.
const REFUSED: &str = "refused";
/// The size of a digest, in bytes.
const DIGEST_BYTES: usize = 32;
/// How often a node checks for requests.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a node tries to have a request applied before it checks again.
const SUBMIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A request, in the data directory of a node, to create an administrator token.
#[derive(Debug)]
pub struct AccessRecoveryRequest {
    file: PathBuf,
    token: String,
}

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessRecovery {
    /// No node has carried it out yet.
    Pending,
    /// The cluster has the token.
    Done,
    /// The node refused the request; its log says why.
    Refused,
}

impl AccessRecoveryRequest {
    /// Generates a token and writes the request for it. The file has the digest of the token's secret alone.
    ///
    /// # Errors
    /// The I/O error if the file cannot be written.
    pub fn write(data_directory: &Path) -> io::Result<Self> {
        let (token, requested) = generate();
        let file = data_directory.join(format!("{PREFIX}{}", requested.id));
        // The user of the node may be another one. The digest reveals nothing.
        secret_file::create(&file, 0o644, &requested.secret.0)?;
        Ok(Self { file, token })
    }

    /// What has become of the request.
    #[must_use]
    pub fn state(&self) -> AccessRecovery {
        if self.file.with_extension(DONE).exists() {
            AccessRecovery::Done
        } else if self.file.with_extension(REFUSED).exists() {
            AccessRecovery::Refused
        } else {
            AccessRecovery::Pending
        }
    }

    /// Deletes the files of the request: a node that has not begun to carry it out never will.
    ///
    /// # Errors
    /// The I/O error if a file cannot be deleted.
    pub fn withdraw(&self) -> io::Result<()> {
        for file in [
            self.file.clone(),
            self.file.with_extension(DONE),
            self.file.with_extension(REFUSED),
        ] {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// The token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }
}

/// Carries out requests for recovery until the node stops.
pub(crate) fn start(context: Arc<Context>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let process_requests = async {
            let mut last_failure = String::new();
            loop {
                let failure = process_requests(&context).await.err().unwrap_or_default();
                if !failure.is_empty() && failure != last_failure {
                    tracing::warn!(failure, "access cannot be recovered yet");
                }
                last_failure = failure;
                sleep(CHECK_INTERVAL).await;
            }
        };
        tokio::select! {
            () = process_requests => {}
            () = context.shutdown.cancelled() => {}
        }
    })
}

/// Carries out the requests in the data directory; returns the first failure.
async fn process_requests(context: &Context) -> Result<(), String> {
    let data_directory = context.data_directory.clone();
    let found = spawn_blocking(move || requests(&data_directory)).await;
    let found = found.map_err(|error| error.to_string())?;
    for file in found.map_err(|error| error.to_string())? {
        let reading = file.clone();
        let read = spawn_blocking(move || read(&reading)).await;
        let read = read.map_err(|error| error.to_string())?;
        let extension = match read.map_err(|error| format!("{}: {error}", file.display()))? {
            Some(token) => {
                let recovered = recover(context, token).await;
                recovered.map_err(|refusal| refusal.to_string())?;
                DONE
            }
            None => {
                tracing::warn!(file = %file.display(), "the request to recover access is not a digest of 32 bytes");
                REFUSED
            }
        };
        let processed = spawn_blocking(move || fs::rename(&file, file.with_extension(extension)));
        let processed = processed.await.map_err(|error| error.to_string())?;
        processed.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The files of the requests that no node has processed.
fn requests(data_directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut requests = Vec::new();
    for entry in fs::read_dir(data_directory)? {
        let entry = entry?;
        let path = entry.path();
        let is_named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if is_named && path.extension().is_none() && entry.file_type()?.is_file() {
            requests.push(path);
        }
    }
    Ok(requests)
}

/// The token of a request; `None` if the file is not a digest.
fn read(file: &Path) -> io::Result<Option<BootstrapToken>> {
    // One byte more than a digest shows that the file is longer.
    let mut contents = Vec::new();
    let mut head = File::open(file)?.take(DIGEST_BYTES as u64 + 1);
    head.read_to_end(&mut contents)?;
    let digest = <[u8; DIGEST_BYTES]>::try_from(contents);
    Ok(digest.ok().map(|digest| {
        let secret = SecretHash(digest);
        let id = TokenId::of_secret(secret);
        BootstrapToken { id, secret }
    }))
}

async fn recover(context: &Context, token: BootstrapToken) -> Result<(), Refusal> {
    let command = Command::of_cluster(RecoverAccess { token });
    let deadline = Instant::now() + SUBMIT_TIMEOUT;
    let reply::Done {} = context.node_gateway.submit(command, deadline).await?;
    tracing::warn!(token = %token.id, "access was recovered: this token administers the cluster for a day");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::api_token::ApiToken;

    #[test]
    fn the_request_has_the_digest_of_the_token_that_is_printed() {
        let data = tempfile::tempdir().expect("a directory");
        let request = AccessRecoveryRequest::write(data.path()).expect("room");
        let other = AccessRecoveryRequest::write(data.path()).expect("room");
        assert_eq!(requests(data.path()).expect("it exists").len(), 2);
        let requested = read(&request.file).expect("it exists").expect("a digest");
        let token = ApiToken::parse(request.token()).expect("valid");
        assert!(token.is(requested));
        assert_eq!(request.state(), AccessRecovery::Pending);
        fs::rename(&request.file, request.file.with_extension(DONE)).expect("it exists");
        assert_eq!(request.state(), AccessRecovery::Done);
        assert_eq!(other.state(), AccessRecovery::Pending);
        let left = requests(data.path()).expect("it exists");
        assert_eq!(left, std::slice::from_ref(&other.file));
        request.withdraw().expect("it is there");
        other.withdraw().expect("it is there");
        assert_eq!(fs::read_dir(data.path()).expect("it exists").count(), 0);
        request.withdraw().expect("there is nothing to delete");
    }

    #[test]
    fn an_invalid_request_is_refused() {
        let data = tempfile::tempdir().expect("a directory");
        let file = data.path().join(PREFIX);
        for (size, is_valid) in [(0, false), (31, false), (32, true), (33, false)] {
            fs::write(&file, vec![7; size]).expect("room");
            let found = read(&file).expect("it exists");
            assert_eq!(found.is_some(), is_valid, "{size} bytes");
        }
    }
}
