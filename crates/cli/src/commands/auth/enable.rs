//! `flo auth enable`.

use super::mode;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::AccessMode;

const EXAMPLES: &str = "\
Example:
  flo token create root --cluster --role cluster-admin --ttl none > root.token
  flo auth enable --token-file root.token";

/// Close the cluster: require an API token for every call
///
/// You must pass a token that permits `access.write`, so that you do not lock yourself out.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Enable {}

impl Enable {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        mode::set(session, AccessMode::Closed).await
    }
}
