//! The members of the cluster, and their encoding.

use crate::raft::type_config::{LogId, TypeConfig};
use flotilla_engine::codec::{self, DecodeError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A member, as the log of its cluster records it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    /// The cluster's id: fixed by the entry that formed it, which lists the members.
    pub(crate) cluster_id: String,
    /// Its address for peers.
    pub(crate) peer_address: String,
    /// Its address for clients.
    pub(crate) client_address: String,
    /// The data directory's incarnation: drawn when the directory was created, so that a member
    /// whose directory was wiped is not taken for the one that voted under its id.
    pub(crate) incarnation: u64,
}

pub(crate) type Membership = openraft::Membership<u64, Member>;
pub(crate) type StoredMembership = openraft::type_config::alias::StoredMembershipOf<TypeConfig>;

/// The persisted form: ours, since openraft's own may change with its version.
#[derive(Serialize, Deserialize)]
enum Versioned {
    V1(Record),
}

#[derive(Serialize, Deserialize)]
struct Record {
    /// The log id that set it; unset in the entry itself, which has its own log id.
    log_id: Option<(u64, u64)>,
    /// One set of voters, or two during a change.
    voters: Vec<BTreeSet<u64>>,
    members: BTreeMap<u64, Member>,
}

/// Bytes that are not a membership.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MembershipError {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error("expected every voter among the members, but {0}")]
    Inconsistent(String),
}

/// Encodes a membership with the log id that set it.
pub(crate) fn encode_stored(stored: &StoredMembership) -> Vec<u8> {
    let log_id = stored
        .log_id()
        .as_ref()
        .map(|log_id| (term_of(log_id), log_id.index()));
    encode(log_id, stored.membership())
}

/// Decodes what [`encode_stored`] wrote.
pub(crate) fn decode_stored(bytes: &[u8]) -> Result<StoredMembership, MembershipError> {
    let (log_id, membership) = decode(bytes)?;
    let log_id = log_id.map(|(term, index)| LogId::new_term_index(term, index));
    Ok(StoredMembership::new(log_id, membership))
}

/// Encodes a membership within its log entry.
pub(crate) fn encode_proposed(membership: &Membership) -> Vec<u8> {
    encode(None, membership)
}

/// Decodes what [`encode_proposed`] wrote.
pub(crate) fn decode_proposed(bytes: &[u8]) -> Result<Membership, MembershipError> {
    Ok(decode(bytes)?.1)
}

/// The term in which an entry was proposed.
pub(crate) fn term_of(log_id: &LogId) -> u64 {
    log_id.committed_leader_id().term
}

/// The voters; during a change, old and new ones together.
pub(crate) fn voters(membership: &Membership) -> BTreeSet<u64> {
    membership.voter_ids().collect()
}

/// The cluster's id, once a member is known.
pub(crate) fn cluster_id(membership: &Membership) -> Option<String> {
    let (_, member) = membership.nodes().next()?;
    Some(member.cluster_id.clone())
}

fn encode(log_id: Option<(u64, u64)>, membership: &Membership) -> Vec<u8> {
    codec::encode(&Versioned::V1(Record {
        log_id,
        voters: membership.get_joint_config().clone(),
        members: membership
            .nodes()
            .map(|(id, member)| (*id, member.clone()))
            .collect(),
    }))
}

type Decoded = (Option<(u64, u64)>, Membership);

fn decode(bytes: &[u8]) -> Result<Decoded, MembershipError> {
    let Versioned::V1(record) = codec::decode(bytes)?;
    if record.voters.is_empty() {
        return Ok((record.log_id, Membership::default()));
    }
    let membership = Membership::new(record.voters, record.members)
        .map_err(|error| MembershipError::Inconsistent(error.to_string()))?;
    Ok((record.log_id, membership))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str) -> Member {
        Member {
            cluster_id: "c".to_owned(),
            peer_address: format!("{name}:9001"),
            client_address: format!("{name}:9000"),
            incarnation: 7,
        }
    }

    #[test]
    fn a_membership_survives_the_round_trip_with_learners_and_joint_voters() {
        let voters = vec![BTreeSet::from([1, 2]), BTreeSet::from([2, 3])];
        let members = BTreeMap::from([1, 2, 3, 4].map(|id| (id, member(&format!("n{id}")))));
        let membership = Membership::new(voters, members).unwrap();
        let stored = StoredMembership::new(Some(LogId::new_term_index(3, 9)), membership);
        assert_eq!(decode_stored(&encode_stored(&stored)).unwrap(), stored);
    }

    /// A released form is never edited (design rule 12): a difference here needs a new version.
    #[test]
    fn the_bytes_of_a_membership_do_not_change() {
        let members = BTreeMap::from([(1, member("n"))]);
        let membership = Membership::new(vec![BTreeSet::from([1])], members).unwrap();
        let stored = StoredMembership::new(Some(LogId::new_term_index(3, 9)), membership);
        let golden = b"\x01\x00\x01\x03\x09\x01\x01\x01\x01\x01\x01c\x06n:9001\x06n:9000\x07";
        assert_eq!(encode_stored(&stored), golden);
    }

    #[test]
    fn the_empty_membership_of_a_fresh_replica_survives_the_round_trip() {
        let stored = StoredMembership::default();
        assert_eq!(decode_stored(&encode_stored(&stored)).unwrap(), stored);
    }

    #[test]
    fn a_voter_without_a_record_is_refused() {
        let bytes = codec::encode(&Versioned::V1(Record {
            log_id: None,
            voters: vec![BTreeSet::from([1])],
            members: BTreeMap::new(),
        }));
        assert!(matches!(
            decode_stored(&bytes),
            Err(MembershipError::Inconsistent(_))
        ));
    }
}
