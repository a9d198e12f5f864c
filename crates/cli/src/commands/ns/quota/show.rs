//! `flo ns quota show`.

use super::scope::ScopeArgs;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::QuotaView;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  flo ns quota show
  flo -n acme.shop ns quota show -o json
  flo ns quota show --tree acme
  flo ns quota show --defaults";

/// Show the limits of a namespace, and what it uses
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Show {
    #[command(flatten)]
    scope: ScopeArgs,
}

impl Show {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let scope = self.scope.scope();
        let quota = scope.quota(session).await?;
        let usage = scope.usage(session).await?;
        session
            .output
            .value(&QuotaView::new(quota, usage), QuotaView::text)
    }
}
