//! Whose quota: a namespace's or a tree's (X27, X37).

use crate::ids::{NameInvalid, Namespace, TreeName};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Whose quota.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum QuotaScope {
    /// What every new namespace begins with: `*`.
    Defaults,
    /// One namespace: `acme.shop`.
    Namespace(Namespace),
    /// All namespaces with the same first label, together: `acme.*`.
    Tree(TreeName),
}

impl QuotaScope {
    /// Parses `*`, `LABEL.*` or a namespace.
    ///
    /// # Errors
    /// [`NameInvalid`] for any other text.
    pub fn parse(text: &str) -> Result<Self, NameInvalid> {
        if text == "*" {
            return Ok(Self::Defaults);
        }
        match text.strip_suffix(".*") {
            Some(label) => TreeName::new(label).map(Self::Tree),
            None => Namespace::new(text).map(Self::Namespace),
        }
    }

    /// The scopes whose quotas hold for a namespace.
    pub(crate) fn around(namespace: &Namespace) -> [Self; 2] {
        [
            Self::Namespace(namespace.clone()),
            Self::Tree(namespace.tree()),
        ]
    }
}

impl fmt::Display for QuotaScope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Defaults => formatter.write_str("*"),
            Self::Namespace(namespace) => namespace.fmt(formatter),
            Self::Tree(tree) => write!(formatter, "{tree}.*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_a_namespace_a_tree_or_the_defaults() {
        for text in ["*", "acme", "acme.shop", "acme.*"] {
            let scope = QuotaScope::parse(text).map(|scope| scope.to_string());
            assert_eq!(scope.as_deref(), Ok(text));
        }
        for text in ["", ".*", "acme.shop.*", "a*", "1.*"] {
            assert!(QuotaScope::parse(text).is_err(), "{text}");
        }
        let namespace = Namespace::new("acme.shop.eu").expect("a namespace");
        let scopes = QuotaScope::around(&namespace).map(|scope| scope.to_string());
        assert_eq!(scopes, ["acme.shop.eu", "acme.*"]);
    }
}
