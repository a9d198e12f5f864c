//! Whether a command is about credentials of a namespace or of the cluster.

use clap::Args;

/// Selects what belongs to the cluster instead of the namespace.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Scope {
    /// The whole cluster instead of the namespace
    #[arg(long)]
    pub(crate) cluster: bool,
}
