//! Grants: a role, and where it holds (X17).

use super::permission::{Permission, PermissionSet};
use super::role::{ClusterRole, NamespaceRole};
use crate::access_rejection::AccessRejection;
use crate::command_scope::CommandScope;
use crate::ids::{ApproverRole, NameInvalid, Namespace};
use crate::limits::{TOKEN_APPROVES_MAX, TOKEN_GRANTS_MAX};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Permissions that a role gives only in a tree of namespaces.
const OF_TREES: [Permission; 2] = [Permission::NamespaceCreate, Permission::NamespacePurge];

/// A role that a credential has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Grant {
    /// In namespaces: `ROLE@PATTERN`.
    InNamespaces {
        /// The role.
        role: NamespaceRole,
        /// Where it holds.
        pattern: NamespacePattern,
    },
    /// In the cluster as a whole: `ROLE`.
    InCluster(ClusterRole),
}

/// The namespaces in which a role holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NamespacePattern {
    /// All of them: `*`.
    All,
    /// A namespace and all whose names continue it after a dot: `acme.*`.
    Tree(Namespace),
    /// One namespace: `acme.shop`.
    One(Namespace),
}

/// Why a text is not a grant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantInvalid {
    /// No role has this name.
    #[error("expected a role, but {found:?} is none")]
    Role {
        /// The text in its place.
        found: String,
    },
    /// A role in namespaces without a pattern.
    #[error("expected `{role}@NAMESPACE`, but the namespace is missing")]
    PatternMissing {
        /// The role.
        role: NamespaceRole,
    },
    /// A role in the cluster with a pattern.
    #[error(
        "expected `{role}` alone, because it is a role in the whole cluster, but {found:?} follows it"
    )]
    PatternOfCluster {
        /// The role.
        role: ClusterRole,
        /// What follows it.
        found: String,
    },
    /// The pattern is none.
    #[error("expected a namespace, `NAMESPACE.*` or `*`, but {0}")]
    Pattern(NameInvalid),
}

impl Grant {
    /// Parses `ROLE@PATTERN` or `ROLE`.
    ///
    /// # Errors
    /// [`GrantInvalid`] for any other text.
    pub fn parse(text: &str) -> Result<Self, GrantInvalid> {
        let (role, pattern) = match text.split_once('@') {
            Some((role, pattern)) => (role, Some(pattern)),
            None => (text, None),
        };
        if let Some(role) = ClusterRole::from_name(role) {
            return match pattern {
                None => Ok(Self::InCluster(role)),
                Some(found) => Err(GrantInvalid::PatternOfCluster {
                    role,
                    found: format!("@{found}"),
                }),
            };
        }
        let role = NamespaceRole::from_name(role).ok_or_else(|| GrantInvalid::Role {
            found: role.to_owned(),
        })?;
        let pattern = pattern.ok_or(GrantInvalid::PatternMissing { role })?;
        let pattern = NamespacePattern::parse(pattern).map_err(GrantInvalid::Pattern)?;
        Ok(Self::InNamespaces { role, pattern })
    }

    /// Whether it gives the permission for what lies in the scope.
    pub(crate) fn gives(&self, permission: Permission, scope: &CommandScope) -> bool {
        match self {
            Self::InCluster(_) => self.permissions().has(permission),
            Self::InNamespaces { pattern, .. } => {
                self.permissions().has(permission)
                    && scope
                        .namespace()
                        .is_some_and(|namespace| pattern.matches(namespace))
            }
        }
    }

    /// What it permits where it holds. Namespaces are created and deleted only with a grant that holds in a tree, because
    /// otherwise who administers one could not be kept from creating it again.
    fn permissions(&self) -> PermissionSet {
        match self {
            Self::InCluster(role) => role.permissions(),
            Self::InNamespaces { role, pattern } => match pattern {
                NamespacePattern::All | NamespacePattern::Tree(_) => role.permissions(),
                NamespacePattern::One(_) => role.permissions().without(&OF_TREES),
            },
        }
    }

    /// Whether it holds wherever the other one does.
    fn holds_where(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::InCluster(_), _) => true,
            (Self::InNamespaces { .. }, Self::InCluster(_)) => false,
            (Self::InNamespaces { pattern, .. }, Self::InNamespaces { pattern: other, .. }) => {
                pattern.covers(other)
            }
        }
    }

    /// Whether it gives anything in the namespace.
    pub(crate) fn is_in(&self, namespace: &Namespace) -> bool {
        match self {
            Self::InCluster(role) => *role == ClusterRole::ClusterAdmin,
            Self::InNamespaces { pattern, .. } => pattern.matches(namespace),
        }
    }

    /// Whether it holds in no other namespace than this one, and not in the cluster.
    pub(crate) fn is_within(&self, scope: &CommandScope) -> bool {
        match (self, scope) {
            (_, CommandScope::Cluster) => true,
            (Self::InCluster(_), CommandScope::Namespace(_)) => false,
            (Self::InNamespaces { pattern, .. }, CommandScope::Namespace(namespace)) => {
                matches!(pattern, NamespacePattern::One(one) if one == namespace)
            }
        }
    }

    /// Whether the grants of a credential together permit all that this grant permits, and where it does (X19).
    pub(crate) fn is_covered_by(&self, grants: &[Self]) -> bool {
        let is_given = |permission| {
            let mut own = grants.iter();
            own.any(|own| own.permissions().has(permission) && own.holds_where(self))
        };
        let mut needed = self.permissions().iter();
        needed.all(is_given)
    }
}

/// Checks the grants and approver roles of a credential of the scope.
pub(super) fn check_all(
    scope: &CommandScope,
    grants: &[Grant],
    approves: &[ApproverRole],
) -> Result<(), AccessRejection> {
    if !(1..=TOKEN_GRANTS_MAX).contains(&grants.len()) {
        return Err(AccessRejection::TokenGrantsInvalid {
            count: grants.len() as u64,
        });
    }
    if approves.len() > TOKEN_APPROVES_MAX {
        return Err(AccessRejection::TokenApprovesInvalid {
            count: approves.len() as u64,
        });
    }
    match grants.iter().find(|grant| !grant.is_within(scope)) {
        None => Ok(()),
        Some(beyond) => Err(AccessRejection::GrantOutOfScope {
            grant: beyond.clone(),
            scope: scope.clone(),
        }),
    }
}

impl NamespacePattern {
    /// Parses a namespace, `NAMESPACE.*` or `*`.
    ///
    /// # Errors
    /// [`NameInvalid`] for any other text.
    pub fn parse(text: &str) -> Result<Self, NameInvalid> {
        if text == "*" {
            return Ok(Self::All);
        }
        match text.strip_suffix(".*") {
            Some(root) => Namespace::new(root).map(Self::Tree),
            None => Namespace::new(text).map(Self::One),
        }
    }

    /// Whether the namespace is one of these.
    #[must_use]
    pub fn matches(&self, namespace: &Namespace) -> bool {
        match self {
            Self::All => true,
            Self::Tree(root) => is_in_tree(root, namespace),
            Self::One(one) => one == namespace,
        }
    }

    /// Whether it matches every namespace that the other one matches.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::All, _) => true,
            (Self::Tree(root), Self::Tree(other) | Self::One(other)) => is_in_tree(root, other),
            (Self::One(one), Self::One(other)) => one == other,
            (Self::Tree(_), Self::All) | (Self::One(_), Self::All | Self::Tree(_)) => false,
        }
    }
}

/// Whether the namespace is `root`, or its name continues that of `root` after a dot.
fn is_in_tree(root: &Namespace, namespace: &Namespace) -> bool {
    let rest = namespace.as_str().strip_prefix(root.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl fmt::Display for Grant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCluster(role) => write!(formatter, "{role}"),
            Self::InNamespaces { role, pattern } => write!(formatter, "{role}@{pattern}"),
        }
    }
}

impl fmt::Display for NamespacePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => formatter.write_str("*"),
            Self::Tree(root) => write!(formatter, "{root}.*"),
            Self::One(one) => write!(formatter, "{one}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(text: &str) -> Grant {
        Grant::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn scope(name: &str) -> CommandScope {
        CommandScope::Namespace(Namespace::new(name).expect("a name"))
    }

    #[test]
    fn a_grant_is_written_as_it_is_read() {
        for text in ["viewer@shop", "admin@acme.*", "worker@*", "cluster-admin"] {
            assert_eq!(grant(text).to_string(), text);
        }
    }

    #[test]
    fn a_text_that_is_no_grant_is_refused_with_its_fault() {
        let error = |text: &str| Grant::parse(text).expect_err(text).to_string();
        assert!(error("owner@shop").contains("\"owner\""));
        assert!(error("viewer").contains("viewer@NAMESPACE"));
        assert!(error("cluster-admin@shop").contains("\"@shop\""));
        for text in [
            "viewer@",
            "viewer@a*",
            "viewer@*.b",
            "viewer@a.*.b",
            "viewer@.*",
        ] {
            assert!(error(text).contains("NAMESPACE.*"), "{text}");
        }
    }

    #[test]
    fn a_tree_is_a_namespace_and_those_below_it() {
        let tree = NamespacePattern::parse("acme.*").expect("a pattern");
        let matches = |name: &str| tree.matches(&Namespace::new(name).expect("a name"));
        assert!(matches("acme") && matches("acme.shop") && matches("acme.shop.eu"));
        assert!(!matches("acme-shop") && !matches("acmeshop") && !matches("other.acme"));
    }

    #[test]
    fn a_role_gives_its_permissions_where_it_holds() {
        let editor = grant("editor@acme.*");
        assert!(editor.gives(Permission::RunStart, &scope("acme.shop")));
        assert!(!editor.gives(Permission::RunStart, &scope("other")));
        assert!(!editor.gives(Permission::TokenWrite, &scope("acme.shop")));
        assert!(!editor.gives(Permission::RunStart, &CommandScope::Cluster));
        let operator = grant("cluster-operator");
        assert!(operator.gives(Permission::ClusterOperate, &CommandScope::Cluster));
        assert!(!operator.gives(Permission::RunRead, &scope("acme.shop")));
        assert!(grant("cluster-admin").gives(Permission::RunStart, &scope("acme.shop")));
    }

    #[test]
    fn only_a_grant_in_a_tree_creates_namespaces() {
        let creates =
            |text: &str| grant(text).gives(Permission::NamespaceCreate, &scope("acme.shop"));
        assert!(creates("admin@acme.*") && creates("admin@*") && creates("cluster-admin"));
        assert!(!creates("admin@acme.shop") && !creates("editor@acme.*"));
    }

    #[test]
    fn a_grant_is_covered_only_by_grants_that_permit_as_much_everywhere() {
        let own = [grant("admin@acme.*"), grant("worker@acme.shop")];
        for covered in [
            "viewer@acme",
            "admin@acme.shop",
            "editor@acme.*",
            "worker@acme.shop",
        ] {
            assert!(grant(covered).is_covered_by(&own), "{covered}");
        }
        for beyond in [
            "viewer@*",
            "viewer@other",
            "worker@acme.*",
            "cluster-viewer",
        ] {
            assert!(!grant(beyond).is_covered_by(&own), "{beyond}");
        }
        for any in ["admin@*", "worker@shop", "cluster-admin"] {
            assert!(grant(any).is_covered_by(&[grant("cluster-admin")]), "{any}");
        }
    }
}
