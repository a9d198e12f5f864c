//! `flo token revoke`.

use super::scope::Scope;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{RevokeClusterTokenRequest, RevokeTokenRequest};
use serde::Serialize;

/// End an API token
///
/// When the command has returned, no node carries out another call of the token. You can repeat the command.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo token revoke q7xmzb2kfa --namespace shop")]
pub(crate) struct Revoke {
    /// Id of the token
    id: String,

    #[command(flatten)]
    scope: Scope,
}

#[derive(Debug, Serialize)]
struct RevokedView {
    id: String,
    revoked: bool,
}

impl Revoke {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let id = self.id.clone();
        let response = if self.scope.cluster {
            let request = RevokeClusterTokenRequest {
                id,
                ..RevokeClusterTokenRequest::default()
            };
            client.revoke_cluster_token(request).await?
        } else {
            let request = RevokeTokenRequest {
                id,
                ..RevokeTokenRequest::default()
            };
            client.revoke_token(request).await?
        };
        let view = RevokedView {
            id: self.id,
            revoked: response.revoked,
        };
        session.output.value(&view, |view| {
            let done = if view.revoked {
                "revoked"
            } else {
                "had already ended"
            };
            format!("{} {done}", view.id)
        })
    }
}
