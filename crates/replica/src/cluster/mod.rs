//! Being a member: founding, leading, and telling how the cluster stands.

pub(crate) mod divergence;
pub(crate) mod formation;
pub(crate) mod leadership;
pub(crate) mod outage;
pub(crate) mod recovery;
pub(crate) mod status;
pub(crate) mod upkeep;
