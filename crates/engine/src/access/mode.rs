//! The access mode of the cluster (X1).

use serde::{Deserialize, Serialize};

/// Whether callers need a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessMode {
    /// A caller without a credential may do everything.
    Open,
    /// A caller without a credential may do nothing.
    Closed,
}

impl AccessMode {
    /// The published name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed => "closed",
        }
    }

    /// The mode with this published name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Open, Self::Closed];
        all.into_iter().find(|mode| mode.as_str() == name)
    }
}
