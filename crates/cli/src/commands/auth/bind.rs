//! `flo auth bind`.

use super::changed;
use crate::commands::rights::Rights;
use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{BindClusterSubjectRequest, BindSubjectRequest};

const EXAMPLES: &str = "\
Examples:
  flo auth bind cert:dns:till.shop.example --role worker --namespace shop
  flo auth bind cert:uri:spiffe://shop/billing --role editor@shop --role viewer@audit --cluster
  flo auth bind oidc:corp:group:editors --role editor --namespace shop";

/// Give the holder of a client certificate or of an issuer's token rights, in place of those that it had
///
/// The subject of a client certificate is the first URI, in byte order, among its subject alternative names: `cert:uri:URI`.
/// Without a URI, it is the first DNS name: `cert:dns:NAME`. The token of an issuer proves `oidc:ISSUER:sub:SUB`, and
/// `oidc:ISSUER:group:GROUP` for each of its groups. You can give at most the rights that you have yourself.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Bind {
    /// Subject: cert:uri:URI, cert:dns:NAME, oidc:ISSUER:sub:SUB or oidc:ISSUER:group:GROUP
    subject: String,

    #[command(flatten)]
    rights: Rights,

    #[command(flatten)]
    scope: Scope,
}

impl Bind {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let response = if self.scope.cluster {
            let request = BindClusterSubjectRequest {
                subject: self.subject.clone(),
                grants: self.rights.roles,
                approves: self.rights.approves,
                ..BindClusterSubjectRequest::default()
            };
            client.bind_cluster_subject(request).await?
        } else {
            let request = BindSubjectRequest {
                subject: self.subject.clone(),
                grants: self.rights.grants_in(client.namespace()),
                approves: self.rights.approves,
                ..BindSubjectRequest::default()
            };
            client.bind_subject(request).await?
        };
        let done = if response.created {
            "bound"
        } else {
            "bound, in place of its former rights"
        };
        changed::say(session, self.subject, done)
    }
}
