//! Being a member: founding, joining, leading, leaving, and telling how the cluster stands.

pub(crate) mod change;
pub(crate) mod divergence;
pub(crate) mod formation;
pub(crate) mod leadership;
pub(crate) mod members;
pub(crate) mod outage;
pub(crate) mod recovery;
pub(crate) mod retirement;
pub(crate) mod status;
pub(crate) mod upkeep;
