//! Everything a member does to stay consistent: Raft, log, state, snapshots, peer network.
