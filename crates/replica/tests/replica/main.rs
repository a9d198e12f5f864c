//! Replicas as their users see them, several in one process, over loopback.

mod cluster;
mod divergence;
mod formation;
mod membership;
mod serving;
mod snapshots;
