//! `flo token rotate`.

use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::period;
use crate::session::Session;
use crate::views::NewTokenView;
use clap::Args;
use flotilla_client::TokenSecret;
use flotilla_client::v1::{RotateClusterTokenRequest, RotateTokenRequest};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  flo token rotate q7xmzb2kfa --namespace shop > till.token
  flo token rotate q7xmzb2kfa --namespace shop --overlap 1h";

/// Give an API token another secret, and print it
///
/// Its id stays the same. The former secret stays valid for the overlap, so that all holders can change over.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Rotate {
    /// Id of the token
    id: String,

    /// How long the former secret stays valid, at most 7d
    #[arg(long, value_name = "TIME", value_parser = period::parse, default_value = "24h")]
    overlap: Duration,

    #[command(flatten)]
    scope: Scope,
}

impl Rotate {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let secret = TokenSecret::draw();
        let (secret_sha256, overlap_ms) = (secret.sha256(), period::millis(self.overlap));
        let rotated = if self.scope.cluster {
            let request = RotateClusterTokenRequest {
                id: self.id,
                secret_sha256,
                overlap_ms,
                ..RotateClusterTokenRequest::default()
            };
            client.rotate_cluster_token(request).await?
        } else {
            let request = RotateTokenRequest {
                id: self.id,
                secret_sha256,
                overlap_ms,
                ..RotateTokenRequest::default()
            };
            client.rotate_token(request).await?
        };
        let view = NewTokenView::new(secret, rotated);
        session.output.value(&view, |view| view.secret.clone())
    }
}
