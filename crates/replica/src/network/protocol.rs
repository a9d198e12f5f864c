//! The messages of the peer protocol, generated from `proto/flotilla/peer/v1/peer.proto`.

#![allow(
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::too_many_lines,
    clippy::allow_attributes_without_reason,
    reason = "generated; the definition is documented"
)]

tonic::include_proto!("flotilla.peer.v1");
