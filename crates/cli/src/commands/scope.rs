//! Whether a command is about credentials of a namespace or of the cluster.

use super::rights::named_or_default;
use clap::Args;
use flotilla_client::Client;

/// Selects what belongs to the cluster instead of the namespace.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Scope {
    /// The whole cluster instead of the namespace
    #[arg(long)]
    pub(crate) cluster: bool,
}

impl Scope {
    /// The namespace; `None` for the cluster.
    pub(crate) fn namespace(self, client: &Client) -> Option<String> {
        (!self.cluster).then(|| named_or_default(client.namespace()).to_owned())
    }
}
