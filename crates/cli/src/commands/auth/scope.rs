//! Whether a command is about the bindings of a namespace or of the cluster.

use clap::Args;

/// Selects the bindings of the cluster instead of those of the namespace.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Scope {
    /// Bindings of the whole cluster instead of those of the namespace
    #[arg(long)]
    pub(super) cluster: bool,
}
