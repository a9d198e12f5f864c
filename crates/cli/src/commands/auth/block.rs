//! `flo auth block`.

use super::changed;
use crate::commands::descendants::{Credential, Descent};
use crate::failure::Failure;
use crate::session::Session;
use crate::time;
use clap::Args;
use flotilla_client::v1::BlockSubjectRequest;

const EXAMPLES: &str = "\
Examples:
  flo auth block cert:dns:till.shop.example
  flo auth block cert:dns:till.shop.example --tree
  flo auth block cert:uri:spiffe://shop/billing --until 2027-01-01T06:00:00Z";

/// Refuse the holder of a client certificate, whatever rights it has
///
/// When the command has returned, no node carries out another command of the subject. Its bindings stay, and have an effect again
/// when the block ends. A block has no effect in an open cluster.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Block {
    /// Subject: cert:uri:URI, cert:dns:NAME, oidc:ISSUER:sub:SUB or oidc:ISSUER:group:GROUP
    subject: String,

    /// Time at which the block ends [default: never]
    #[arg(long, value_name = "TIME", value_parser = time::parse)]
    until: Option<u64>,

    /// Also end all tokens and bindings that descend from the subject: those that it has created, those created with these, and so
    /// on
    #[arg(long)]
    tree: bool,
}

impl Block {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let request = BlockSubjectRequest {
            subject: self.subject.clone(),
            ends_at_ms: self.until,
            ..BlockSubjectRequest::default()
        };
        let client = session.client()?;
        client.block_subject(request).await?;
        let subject = Credential::binding(self.subject.clone(), None);
        let descent = Descent::of(&client, &subject, (self.tree, time::now_ms())).await?;
        changed::say_ended(session, (self.subject, "blocked"), descent)
    }
}
