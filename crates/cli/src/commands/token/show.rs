//! `flo token show`.

use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::session::Session;
use crate::views::TokenView;
use clap::Args;
use flotilla_client::v1::{GetClusterTokenRequest, GetTokenRequest};

/// Show an API token, without its secret
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo token show q7xmzb2kfa --namespace shop")]
pub(crate) struct Show {
    /// Id of the token: 10 letters and digits
    id: String,

    #[command(flatten)]
    scope: Scope,
}

impl Show {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let token = if self.scope.cluster {
            let request = GetClusterTokenRequest { id: self.id };
            client.get_cluster_token(request).await?
        } else {
            let request = GetTokenRequest {
                id: self.id,
                ..GetTokenRequest::default()
            };
            client.get_token(request).await?
        };
        session
            .output
            .value(&TokenView::from(token), TokenView::text)
    }
}
