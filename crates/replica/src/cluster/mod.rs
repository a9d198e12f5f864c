//! Cluster membership: forming, joining, leading, leaving, and the cluster's status.

pub(crate) mod candidacy;
pub(crate) mod change;
pub(crate) mod consensus_view;
pub(crate) mod contact_watch;
pub(crate) mod disk_pressure;
pub(crate) mod disk_watch;
pub(crate) mod divergence;
pub(crate) mod drain;
pub(crate) mod formation;
pub(crate) mod formation_progress;
pub(crate) mod hung_disk;
pub(crate) mod leader_contact;
pub(crate) mod leader_search;
pub(crate) mod leadership;
pub(crate) mod log_purge;
pub(crate) mod lost_tail;
pub(crate) mod member_disk;
pub(crate) mod members;
pub(crate) mod probe;
pub(crate) mod rebuild;
pub(crate) mod recovery;
pub(crate) mod retired_ids;
pub(crate) mod retirement;
pub(crate) mod status;
pub(crate) mod transfer;
pub(crate) mod upgrade;
