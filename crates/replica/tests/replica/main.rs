//! Tests of replicas through their public API, several in one process, over loopback.

mod backups;
mod callers;
mod cluster;
mod disk_pressure;
mod divergence;
mod drain;
mod foreign;
mod formation;
mod hung_disk;
mod lost_tail;
mod membership;
mod records;
mod serving;
mod snapshots;
mod stale_reads;
mod standstill;
mod upgrade;
