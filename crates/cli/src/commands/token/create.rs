//! `flo token create`.

use crate::commands::rights::Rights;
use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::period;
use crate::session::Session;
use crate::views::NewTokenView;
use clap::Args;
use flotilla_client::TokenSecret;
use flotilla_client::v1::{CreateClusterTokenRequest, CreateTokenRequest};
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  flo token create deploy --role editor --namespace shop
  flo token create till --role worker@shop --ttl 30d --namespace shop > till.token
  flo token create ana --cluster --role cluster-operator --role viewer@* --identity user:ana
  flo token create bo --role operator --identity user:bo --approves editors --namespace shop

Roles in a namespace: viewer, reader, operator, editor, worker, admin. They hold in ROLE@NAMESPACE, in
ROLE@NAMESPACE.* with all namespaces below it, or in ROLE@*.
Roles in the cluster: cluster-viewer, backup, cluster-operator, cluster-admin.";

/// Create an API token, and print it
///
/// The token is printed once: the cluster stores only a digest of its secret. It may do at most what you may do
/// yourself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Create {
    /// Name of the token, for people
    name: String,

    #[command(flatten)]
    rights: Rights,

    /// Lifetime, such as 30d, or `none` for a token that does not expire
    #[arg(long, value_name = "TIME", value_parser = Lifetime::parse, default_value = "90d")]
    ttl: Lifetime,

    /// Identity for which the token acts: user:NAME or service:NAME [default: your own]
    #[arg(
        long,
        value_name = "IDENTITY",
        default_value = "",
        hide_default_value = true
    )]
    identity: String,

    #[command(flatten)]
    scope: Scope,
}

/// How long a token lives.
#[derive(Clone, Copy, Debug)]
struct Lifetime(Option<Duration>);

impl Lifetime {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self(None)),
            text => period::parse(text).map(|length| Self(Some(length))),
        }
    }
}

impl Create {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let secret = TokenSecret::draw();
        let (secret_sha256, ttl_ms) = (secret.sha256(), self.ttl.0.map(period::millis));
        let created = if self.scope.cluster {
            let request = CreateClusterTokenRequest {
                name: self.name,
                grants: self.rights.roles,
                identity: self.identity,
                approves: self.rights.approves,
                ttl_ms,
                secret_sha256,
                ..CreateClusterTokenRequest::default()
            };
            client.create_cluster_token(request).await?
        } else {
            let request = CreateTokenRequest {
                name: self.name,
                grants: self.rights.grants_in(client.namespace()),
                identity: self.identity,
                approves: self.rights.approves,
                ttl_ms,
                secret_sha256,
                ..CreateTokenRequest::default()
            };
            client.create_token(request).await?
        };
        let view = NewTokenView::new(secret, created);
        session.output.value(&view, |view| view.secret.clone())
    }
}
