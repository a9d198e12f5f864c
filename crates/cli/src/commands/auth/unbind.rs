//! `flo auth unbind`.

use super::changed;
use crate::commands::descendants::{Credential, Descent};
use crate::commands::scope::Scope;
use crate::failure::Failure;
use crate::session::Session;
use crate::time;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  flo auth unbind cert:dns:till.shop.example --namespace shop
  flo auth unbind cert:uri:spiffe://shop/billing --cluster --tree";

/// Take back the rights of the holder of a client certificate
///
/// When the command has returned, no node carries out another command that needs these rights.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Unbind {
    /// Subject: cert:uri:URI, cert:dns:NAME, oidc:ISSUER:sub:SUB or oidc:ISSUER:group:GROUP
    subject: String,

    /// Also end all tokens and bindings that descend from the subject: those that it has created there, those created with these,
    /// and so on
    #[arg(long)]
    tree: bool,

    #[command(flatten)]
    scope: Scope,
}

impl Unbind {
    pub(crate) async fn run(self, session: &Session) -> Result<(), Failure> {
        let client = session.client()?;
        let namespace = self.scope.namespace(&client);
        let binding = Credential::binding(self.subject.clone(), namespace);
        match binding.end(&client).await {
            // Perhaps an earlier attempt has ended it, but not all that was created with it.
            Err(failure) if self.tree && failure.code() == "binding_not_found" => {}
            ended => drop(ended?),
        }
        let descent = Descent::of(&client, &binding, (self.tree, time::now_ms())).await?;
        changed::say_ended(session, (self.subject, "unbound"), descent)
    }
}
