//! `flo token revoke`.

use super::descendants::{ScopedToken, descendants_of};
use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::session::Session;
use crate::time;
use clap::Args;
use flotilla_client::Client;
use flotilla_client::v1::{RevokeClusterTokenRequest, RevokeTokenRequest};
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

    /// Also revoke all tokens that descend from it: those created with it, those created with these, and so on
    #[arg(long)]
    tree: bool,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Serialize)]
struct RevokedView {
    id: String,
    revoked: bool,
    /// The ids of the other tokens that were ended.
    tree: Vec<String>,
    /// The ids of valid tokens that were created with it, with those, and so on; empty with `--tree`.
    valid_descendants: Vec<String>,
}

impl Revoke {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let token = ScopedToken {
            id: self.id,
            namespace: (!self.scope.cluster).then(|| client.namespace().to_owned()),
        };
        // First, so that it creates no further tokens.
        let revoked = revoke(&client, &token).await?;
        let mut view = RevokedView {
            id: token.id.clone(),
            revoked,
            tree: Vec::new(),
            valid_descendants: Vec::new(),
        };
        if self.tree {
            view.tree = revoke_descendants(&client, &token).await.map_err(|failure| {
                let hint = "the token is revoked, but perhaps not all tokens that were created with it: repeat the command, with \
                            another credential if you have revoked your own";
                failure.with_hint(hint)
            })?;
        } else if let Ok(descendants) = descendants_of(&client, &token, time::now_ms()).await {
            // An error here is not one of the revocation: a caller that revokes its own token cannot list others afterwards.
            view.valid_descendants = descendants.into_iter().map(|one| one.id).collect();
        }
        session.output.value(&view, RevokedView::text)
    }
}

/// Ends the descendants of a token that was revoked, and returns their ids.
async fn revoke_descendants(client: &Client, root: &ScopedToken) -> Result<Vec<String>, Failure> {
    let mut ended = Vec::new();
    loop {
        // Those that have expired by the clock of this machine too: it may be ahead.
        let mut descendants = descendants_of(client, root, 0).await?;
        descendants.retain(|one| !ended.contains(&one.id));
        if descendants.is_empty() {
            return Ok(ended);
        }
        // Each of them may have created further ones until it was ended, so look again.
        for descendant in descendants {
            revoke(client, &descendant).await?;
            ended.push(descendant.id);
        }
    }
}

async fn revoke(client: &Client, token: &ScopedToken) -> Result<bool, Failure> {
    let id = token.id.clone();
    let response = match &token.namespace {
        None => {
            let request = RevokeClusterTokenRequest {
                id,
                ..RevokeClusterTokenRequest::default()
            };
            client.revoke_cluster_token(request).await?
        }
        Some(namespace) => {
            let request = RevokeTokenRequest {
                id,
                namespace: namespace.clone(),
                ..RevokeTokenRequest::default()
            };
            client.revoke_token(request).await?
        }
    };
    Ok(response.revoked)
}

impl RevokedView {
    fn text(&self) -> String {
        let done = if self.revoked {
            "revoked"
        } else {
            "had already ended"
        };
        let mut lines = vec![format!("{} {done}", self.id)];
        lines.extend(self.tree.iter().map(|id| format!("{id} revoked")));
        if !self.valid_descendants.is_empty() {
            let ids = self.valid_descendants.join(", ");
            lines.push(format!(
                "still valid, but created with it: {ids}; --tree revokes them too"
            ));
        }
        lines.join("\n")
    }
}
