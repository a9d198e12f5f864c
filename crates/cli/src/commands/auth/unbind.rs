//! `flo auth unbind`.

use super::changed;
use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::{UnbindClusterSubjectRequest, UnbindSubjectRequest};

const EXAMPLES: &str = "\
Examples:
  flo auth unbind cert:dns:till.shop.example --namespace shop
  flo auth unbind cert:uri:spiffe://shop/billing --cluster";

/// Take back the rights of the holder of a client certificate
///
/// When the command has returned, no node carries out another command that needs these rights.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Unbind {
    /// Subject: cert:uri:URI or cert:dns:NAME
    subject: String,

    #[command(flatten)]
    scope: Scope,
}

impl Unbind {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let subject = self.subject.clone();
        if self.scope.cluster {
            let request = UnbindClusterSubjectRequest {
                subject,
                ..UnbindClusterSubjectRequest::default()
            };
            client.unbind_cluster_subject(request).await?;
        } else {
            let request = UnbindSubjectRequest {
                subject,
                ..UnbindSubjectRequest::default()
            };
            client.unbind_subject(request).await?;
        }
        changed::say(session, self.subject, "unbound")
    }
}
