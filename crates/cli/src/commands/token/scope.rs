//! Whether a command is about the tokens of a namespace or of the cluster.

use clap::Args;

/// Selects the tokens of the cluster instead of those of the namespace.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Scope {
    /// Tokens of the whole cluster instead of those of the namespace
    #[arg(long)]
    pub(super) cluster: bool,
}
