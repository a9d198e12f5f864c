//! `flo auth unblock`.

use super::changed;
use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1::UnblockSubjectRequest;

/// End the block of the holder of a client certificate
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo auth unblock cert:dns:till.shop.example")]
pub(crate) struct Unblock {
    /// Subject: cert:uri:URI, cert:dns:NAME, oidc:ISSUER:sub:SUB or oidc:ISSUER:group:GROUP
    subject: String,
}

impl Unblock {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = UnblockSubjectRequest {
            subject: self.subject.clone(),
            ..UnblockSubjectRequest::default()
        };
        let response = session.client()?.unblock_subject(request).await?;
        let done = if response.unblocked {
            "unblocked"
        } else {
            "was not blocked"
        };
        changed::say(session, self.subject, done)
    }
}
