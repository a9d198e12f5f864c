//! `flo auth disable`.

use super::mode;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::AccessMode;

/// Open the cluster: allow everything to callers without a token
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo auth disable --yes")]
pub(crate) struct Disable {
    /// Confirm that every caller that reaches the cluster may do everything
    #[arg(long, required = true)]
    yes: bool,
}

impl Disable {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        mode::set(session, AccessMode::Open).await
    }
}
