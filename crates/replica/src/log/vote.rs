//! The encoding of two small facts beside the entries: the vote and the committed log id.

use crate::membership::term_of;
use crate::raft::type_config::{LogId, TypeConfig};
use flotilla_engine::codec::{self, DecodeError};
use serde::{Deserialize, Serialize};

/// The node for which this node voted, and the term.
pub(crate) type Vote = openraft::type_config::alias::VoteOf<TypeConfig>;

#[derive(Serialize, Deserialize)]
enum VersionedVote {
    V1 {
        term: u64,
        node: u64,
        is_committed: bool,
    },
}

#[derive(Serialize, Deserialize)]
enum VersionedLogId {
    V1 { term: u64, index: u64 },
}

/// Encodes a vote.
pub(crate) fn encode_vote(vote: &Vote) -> Vec<u8> {
    codec::encode(&VersionedVote::V1 {
        term: vote.leader_id.term,
        node: vote.leader_id.voted_for,
        is_committed: vote.committed,
    })
}

/// Decodes what [`encode_vote`] wrote.
pub(crate) fn decode_vote(bytes: &[u8]) -> Result<Vote, DecodeError> {
    let VersionedVote::V1 {
        term,
        node,
        is_committed,
    } = codec::decode(bytes)?;
    Ok(if is_committed {
        Vote::new_committed(term, node)
    } else {
        Vote::new(term, node)
    })
}

/// Encodes a log id.
pub(crate) fn encode_log_id(log_id: &LogId) -> Vec<u8> {
    codec::encode(&VersionedLogId::V1 {
        term: term_of(log_id),
        index: log_id.index(),
    })
}

/// Decodes what [`encode_log_id`] wrote.
pub(crate) fn decode_log_id(bytes: &[u8]) -> Result<LogId, DecodeError> {
    let VersionedLogId::V1 { term, index } = codec::decode(bytes)?;
    Ok(LogId::new_term_index(term, index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_votes_and_log_ids_do_not_change() {
        let vote = Vote::new_committed(7, 3);
        assert_eq!(encode_vote(&vote), [1, 0, 7, 3, 1]);
        assert_eq!(decode_vote(&encode_vote(&vote)).unwrap(), vote);
        let log_id = LogId::new_term_index(7, 250);
        assert_eq!(encode_log_id(&log_id), [1, 0, 7, 250]);
        assert_eq!(decode_log_id(&encode_log_id(&log_id)).unwrap(), log_id);
    }
}
