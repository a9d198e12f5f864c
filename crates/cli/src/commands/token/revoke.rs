//! `flo token revoke`.

use crate::commands::descendants::{Credential, Descent};
use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::session::Session;
use crate::time;
use clap::Args;
use serde::Serialize;

const EXAMPLES: &str = "\
Examples:
  flo token revoke q7xmzb2kfa --namespace shop
  flo token revoke q7xmzb2kfa --cluster --tree";

/// End an API token
///
/// When the command has returned, no node carries out another call of the token. You can repeat the command.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Revoke {
    /// Id of the token
    id: String,

    /// Also end all tokens and bindings that descend from it: those created with it, those created with these, and so on
    #[arg(long)]
    tree: bool,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Serialize)]
struct RevokedView {
    id: String,
    revoked: bool,
    #[serde(flatten)]
    descent: Descent,
}

impl Revoke {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let namespace = self.scope.namespace(&client);
        let token = Credential::token(self.id.clone(), namespace);
        // First, so that it creates nothing further.
        let revoked = token.end(&client).await?;
        let descent = Descent::of(&client, &token, (self.tree, time::now_ms())).await?;
        let view = RevokedView {
            id: self.id,
            revoked,
            descent,
        };
        session.output.value(&view, RevokedView::text)
    }
}

impl RevokedView {
    fn text(&self) -> String {
        let done = if self.revoked {
            "revoked"
        } else {
            "had already ended"
        };
        let mut lines = vec![format!("{} {done}", self.id)];
        lines.extend(self.descent.lines());
        lines.join("\n")
    }
}
