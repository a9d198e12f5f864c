//! `flo auth enable`.

use super::dry_run;
use super::mode;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::AccessMode;

const EXAMPLES: &str = "\
Examples:
  flo token create root --cluster --role cluster-admin --ttl none > root.token
  flo auth enable --dry-run --token-file root.token
  flo auth enable --token-file root.token";

/// Close the cluster: require a credential for every call
///
/// You must pass a token that permits `access.write`, so that you do not lock yourself out. With --dry-run, the command
/// changes nothing. It shows the calls of the last hour that a closed cluster would have refused, as counted by each node.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Enable {
    /// Show which calls would be refused, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Enable {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        if self.dry_run {
            return dry_run::show(session).await;
        }
        mode::set(session, AccessMode::Closed).await
    }
}
