//! `flo auth recover`.

use crate::code::Code;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_server::{AccessRecovery, AccessRecoveryRequest};
use serde::Serialize;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const EXAMPLES: &str = "\
Example:
  umask 077
  flo auth recover --data-dir /var/lib/flotilla > recovery.token
  flo token create ana --cluster --role cluster-admin --identity user:ana --token-file recovery.token > ana.token";

/// How often the command checks whether the node has carried out the request.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Create an administrator token that is valid for a day, on the machine of a running node
///
/// Use this when all administrator tokens are lost. The command writes a request to the data directory of the node, and prints the
/// token once the cluster has it. Any user who can write to that directory can run this command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Recover {
    /// Data directory of a running node
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,
}

#[derive(Debug, Serialize)]
struct RecoveryView {
    secret: String,
}

impl Recover {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        self.check_directory()?;
        let unwritable = |error| self.unwritable(&error);
        let request = AccessRecoveryRequest::write(&self.data_dir).map_err(unwritable)?;
        let deadline = Instant::now() + session.timeout();
        while request.state() == AccessRecovery::Pending && Instant::now() < deadline {
            sleep(CHECK_INTERVAL).await;
        }
        let state = request.state();
        request.withdraw().map_err(unwritable)?;
        if state != AccessRecovery::Done {
            let message = "expected a running node to carry out the request, but it has not; it was withdrawn";
            return Err(Failure::new(Code::RecoveryTimeout, message).with_hint(
                "check that the node is running and knows a leader; its log says why the request failed",
            ));
        }
        let view = RecoveryView {
            secret: request.token().to_owned(),
        };
        session.output.value(&view, |view| view.secret.clone())
    }

    /// Checks that there is a node's state: a mistyped directory gets no file.
    fn check_directory(&self) -> Result<(), Failure> {
        let state = fs::metadata(self.data_dir.join("state"));
        match state {
            Ok(state) if state.is_dir() => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Err(self.unwritable(&error))
            }
            Ok(_) | Err(_) => {
                let message = format!(
                    "expected the data directory of a node, but {} is not one",
                    self.data_dir.display()
                );
                Err(Failure::new(Code::DataDirInvalid, message)
                    .with_hint("give the node's `data_dir`"))
            }
        }
    }

    fn unwritable(&self, error: &io::Error) -> Failure {
        let message = format!(
            "expected to write a request to {}, but that failed: {error}",
            self.data_dir.display()
        );
        Failure::new(Code::DataDirUnwritable, message)
            .with_hint("run this command as the user of the node, or as root")
    }
}
