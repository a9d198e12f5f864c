//! The members of two clusters that have the same addresses one after the other.

use crate::network::Host;
use std::fmt;

/// One of two clusters. The code under test does not see this value, so it reveals any confusion of the clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cluster {
    /// The first one.
    Old,
    /// The one that replaces it.
    New,
}

impl fmt::Display for Cluster {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Old => "the old cluster",
            Self::New => "the new cluster",
        })
    }
}

/// A member of one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) host: Host,
    pub(crate) cluster: Cluster,
}

impl fmt::Display for Member {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "node {} of {}", self.host, self.cluster)
    }
}
