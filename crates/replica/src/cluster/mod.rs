//! Being a member: founding, joining, leading, leaving, and telling how the cluster stands.

pub(crate) mod change;
pub(crate) mod divergence;
pub(crate) mod formation;
pub(crate) mod leadership;
pub(crate) mod members;
pub(crate) mod pulse;
pub(crate) mod rebuild;
pub(crate) mod recovery;
pub(crate) mod retirement;
pub(crate) mod room;
pub(crate) mod status;
pub(crate) mod upgrade;
pub(crate) mod upkeep;
