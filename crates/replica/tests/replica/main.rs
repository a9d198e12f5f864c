//! Replicas as their users see them, several in one process, over loopback.

mod backups;
mod cluster;
mod divergence;
mod formation;
mod membership;
mod records;
mod room;
mod serving;
mod snapshots;
mod upgrade;
