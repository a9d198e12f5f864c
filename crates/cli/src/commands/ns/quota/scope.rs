//! Whose quota a command shows or changes, and the calls about it.

use crate::failure::Failure;
use crate::session::Session;
use clap::Args;
use flotilla_client::v1;
use std::collections::BTreeMap;

/// Whose quota.
#[derive(Debug, Args)]
pub(super) struct ScopeArgs {
    /// Tree of all namespaces whose first label is NAME, instead of the namespace of `-n`
    #[arg(long, value_name = "NAME", conflicts_with = "defaults")]
    tree: Option<String>,

    /// What new namespaces begin with, instead of the namespace of `-n`
    #[arg(long)]
    defaults: bool,
}

/// Whose quota.
pub(super) enum Scope {
    /// The namespace of the client.
    Namespace,
    Tree(String),
    Defaults,
}

impl ScopeArgs {
    /// What the options name.
    pub(super) fn scope(self) -> Scope {
        match (self.tree, self.defaults) {
            (Some(tree), _) => Scope::Tree(tree),
            (None, true) => Scope::Defaults,
            (None, false) => Scope::Namespace,
        }
    }
}

impl Scope {
    /// Reads the quota.
    pub(super) async fn quota(&self, session: &Session) -> Result<v1::Quota, Failure> {
        let client = session.client()?;
        Ok(match self {
            Self::Namespace => client.get_quota(v1::GetQuotaRequest::default()).await?,
            Self::Tree(tree) => {
                let tree = tree.clone();
                client
                    .get_tree_quota(v1::GetTreeQuotaRequest { tree })
                    .await?
            }
            Self::Defaults => {
                client
                    .get_default_quota(v1::GetDefaultQuotaRequest {})
                    .await?
            }
        })
    }

    /// Replaces the quota, if it still has this version.
    pub(super) async fn set(
        self,
        session: &Session,
        limits: BTreeMap<String, u64>,
        version: u64,
    ) -> Result<v1::Quota, Failure> {
        let client = session.client()?;
        let if_version = Some(version);
        Ok(match self {
            Self::Namespace => {
                client
                    .set_quota(v1::SetQuotaRequest {
                        limits,
                        if_version,
                        ..v1::SetQuotaRequest::default()
                    })
                    .await?
            }
            Self::Tree(tree) => {
                client
                    .set_tree_quota(v1::SetTreeQuotaRequest {
                        tree,
                        limits,
                        if_version,
                        ..v1::SetTreeQuotaRequest::default()
                    })
                    .await?
            }
            Self::Defaults => {
                client
                    .set_default_quota(v1::SetDefaultQuotaRequest {
                        limits,
                        if_version,
                        ..v1::SetDefaultQuotaRequest::default()
                    })
                    .await?
            }
        })
    }

    /// Reads what is used; nothing uses the defaults.
    pub(super) async fn usage(&self, session: &Session) -> Result<Option<v1::Usage>, Failure> {
        let client = session.client()?;
        Ok(match self {
            Self::Namespace => Some(client.get_usage(v1::GetUsageRequest::default()).await?),
            Self::Tree(tree) => {
                let tree = tree.clone();
                let request = v1::GetTreeUsageRequest { tree };
                Some(client.get_tree_usage(request).await?)
            }
            Self::Defaults => None,
        })
    }
}
