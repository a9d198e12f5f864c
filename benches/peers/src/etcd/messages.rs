//! The parts of etcd's messages that are used, by their field numbers in version 3 of its API.

use bytes::Bytes;
use prost::Message;

/// The state of the cluster at the time of a response.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct ResponseHeader {
    /// The member that responded.
    #[prost(uint64, tag = "2")]
    pub(super) member_id: u64,
    /// Grows by one with each put.
    #[prost(int64, tag = "3")]
    pub(super) revision: i64,
}

/// Writes a key.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
}

/// The key is written.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PutResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
}

/// Reads keys, linearizable.
#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) range_end: Bytes,
    #[prost(bool, tag = "9")]
    pub(super) count_only: bool,
}

/// What was read.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    #[prost(int64, tag = "4")]
    pub(super) count: i64,
}

/// Asks a member for its status.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct StatusRequest {}

/// The status of a member.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) header: Option<ResponseHeader>,
    /// The leader, as this member believes; 0: none.
    #[prost(uint64, tag = "4")]
    pub(super) leader: u64,
}

impl StatusResponse {
    /// Whether the responding member leads.
    pub(super) fn is_leader(&self) -> bool {
        let id = self.header.map(|header| header.member_id);
        self.leader != 0 && id == Some(self.leader)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(member_id: u64, leader: u64) -> StatusResponse {
        let header = ResponseHeader {
            member_id,
            revision: 1,
        };
        StatusResponse {
            header: Some(header),
            leader,
        }
    }

    #[test]
    fn a_member_leads_when_it_believes_so_itself() {
        assert!(status(7, 7).is_leader());
        assert!(!status(7, 8).is_leader());
        assert!(!status(0, 0).is_leader());
    }

    #[test]
    fn a_put_has_the_bytes_that_etcd_reads() {
        let put = PutRequest {
            key: Bytes::from_static(b"k"),
            value: Bytes::from_static(b"v"),
        };
        assert_eq!(put.encode_to_vec(), b"\x0a\x01k\x12\x01v");
    }
}
