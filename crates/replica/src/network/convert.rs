//! Converts between openraft's types and the messages of the peer protocol.

use crate::cluster::disk_pressure::DiskPressure;
use crate::log::record::{self, RecordError};
use crate::log::vote::Vote;
use crate::membership::{self, StoredMembership, term_of};
use crate::network::calls::PeerError;
use crate::network::protocol::{self, append_response};
use crate::raft::type_config::{LogId, TypeConfig};
use bytes::Bytes;
use openraft::raft::{
    AppendEntriesRequest, StreamAppendError, StreamAppendResult, TransferLeaderRequest,
    VoteRequest, VoteResponse,
};
use protocol::Sender;

/// A message with a missing or malformed part.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MessageError {
    #[error("expected {0}, but it is missing")]
    Missing(&'static str),
    #[error("expected a log record, but {0}")]
    Record(#[from] RecordError),
    #[error("expected {expected}, but {error}")]
    Malformed {
        expected: &'static str,
        error: String,
    },
}

impl From<MessageError> for PeerError {
    fn from(error: MessageError) -> Self {
        Self::Refused(error.to_string())
    }
}

pub(crate) fn vote_out(vote: &Vote) -> protocol::Vote {
    protocol::Vote {
        term: vote.leader_id.term,
        node_id: vote.leader_id.voted_for,
        committed: vote.committed,
    }
}

pub(crate) fn vote_in(vote: Option<protocol::Vote>) -> Result<Vote, MessageError> {
    let vote = vote.ok_or(MessageError::Missing("a vote"))?;
    Ok(if vote.committed {
        Vote::new_committed(vote.term, vote.node_id)
    } else {
        Vote::new(vote.term, vote.node_id)
    })
}

pub(crate) fn log_id_out(log_id: &LogId) -> protocol::LogId {
    protocol::LogId {
        term: term_of(log_id),
        index: log_id.index(),
    }
}

pub(crate) fn log_id_in(log_id: protocol::LogId) -> LogId {
    LogId::new_term_index(log_id.term, log_id.index)
}

pub(crate) fn append_out(
    request: &AppendEntriesRequest<TypeConfig>,
    acknowledged: Option<LogId>,
    (sender, election_ms): (Sender, u64),
) -> protocol::AppendRequest {
    protocol::AppendRequest {
        sender: Some(sender),
        vote: Some(vote_out(&request.vote)),
        previous: request.prev_log_id.as_ref().map(log_id_out),
        leader_commit: request.leader_commit.as_ref().map(log_id_out),
        records: request.entries.iter().map(record::encode).collect(),
        acknowledged: acknowledged.as_ref().map(log_id_out),
        election_ms,
    }
}

pub(crate) fn append_in(
    request: protocol::AppendRequest,
) -> Result<AppendEntriesRequest<TypeConfig>, MessageError> {
    Ok(AppendEntriesRequest {
        vote: vote_in(request.vote)?,
        prev_log_id: request.previous.map(log_id_in),
        leader_commit: request.leader_commit.map(log_id_in),
        entries: request
            .records
            .into_iter()
            .map(record::decode)
            .collect::<Result<_, _>>()?,
    })
}

pub(crate) fn appended_out(
    result: &StreamAppendResult<TypeConfig>,
    wall_ms: u64,
    room: DiskPressure,
    drained: bool,
) -> protocol::AppendResponse {
    let result = match result {
        Ok(last) => append_response::Result::Matched(protocol::Matched {
            last: last.as_ref().map(log_id_out),
        }),
        Err(StreamAppendError::Conflict(log_id)) => {
            append_response::Result::Conflict(log_id_out(log_id))
        }
        Err(StreamAppendError::HigherVote(vote)) => {
            append_response::Result::HigherVote(vote_out(vote))
        }
    };
    protocol::AppendResponse {
        sent_at_ms: wall_ms,
        disk_pressure: disk_pressure_out(room),
        drained,
        result: Some(result),
    }
}

fn disk_pressure_out(room: DiskPressure) -> u32 {
    match room {
        DiskPressure::Normal => 0,
        DiskPressure::Low => 1,
        DiskPressure::Critical => 2,
    }
}

/// An unknown level of a newer version counts as the most severe one.
pub(crate) fn disk_pressure_in(room: u32) -> DiskPressure {
    match room {
        0 => DiskPressure::Normal,
        1 => DiskPressure::Low,
        _ => DiskPressure::Critical,
    }
}

pub(crate) fn appended_in(
    response: protocol::AppendResponse,
) -> Result<StreamAppendResult<TypeConfig>, MessageError> {
    Ok(
        match response.result.ok_or(MessageError::Missing("a result"))? {
            append_response::Result::Matched(matched) => Ok(matched.last.map(log_id_in)),
            append_response::Result::Conflict(log_id) => {
                Err(StreamAppendError::Conflict(log_id_in(log_id)))
            }
            append_response::Result::HigherVote(vote) => {
                Err(StreamAppendError::HigherVote(vote_in(Some(vote))?))
            }
        },
    )
}

pub(crate) fn vote_request_out(
    request: &VoteRequest<TypeConfig>,
    sender: Sender,
    is_pre_vote: bool,
) -> protocol::VoteRequest {
    protocol::VoteRequest {
        sender: Some(sender),
        vote: Some(vote_out(&request.vote)),
        last_log_id: request.last_log_id.as_ref().map(log_id_out),
        leadership_transfer: request.leadership_transfer,
        pre_vote: is_pre_vote,
    }
}

pub(crate) fn vote_request_in(
    request: protocol::VoteRequest,
) -> Result<VoteRequest<TypeConfig>, MessageError> {
    let last_log_id = request.last_log_id.map(log_id_in);
    let mut vote_request = VoteRequest::new(vote_in(request.vote)?, last_log_id);
    vote_request.leadership_transfer = request.leadership_transfer;
    Ok(vote_request)
}

pub(crate) fn vote_response_out(
    response: &VoteResponse<TypeConfig>,
    wall_ms: u64,
) -> protocol::VoteResponse {
    protocol::VoteResponse {
        sent_at_ms: wall_ms,
        vote: Some(vote_out(&response.vote)),
        granted: response.vote_granted,
        last_log_id: response.last_log_id.as_ref().map(log_id_out),
    }
}

pub(crate) fn vote_response_in(
    response: protocol::VoteResponse,
) -> Result<VoteResponse<TypeConfig>, MessageError> {
    let last_log_id = response.last_log_id.map(log_id_in);
    Ok(VoteResponse::new(
        vote_in(response.vote)?,
        last_log_id,
        response.granted,
    ))
}

pub(crate) fn transfer_out(
    request: &TransferLeaderRequest<TypeConfig>,
    sender: Sender,
) -> protocol::TransferLeaderRequest {
    protocol::TransferLeaderRequest {
        sender: Some(sender),
        from_leader: Some(vote_out(request.from_leader())),
        to_node_id: *request.to_node_id(),
        last_log_id: request.last_log_id().map(log_id_out),
    }
}

pub(crate) fn transfer_in(
    request: protocol::TransferLeaderRequest,
) -> Result<TransferLeaderRequest<TypeConfig>, MessageError> {
    let last_log_id = request.last_log_id.map(log_id_in);
    Ok(TransferLeaderRequest::new(
        vote_in(request.from_leader)?,
        request.to_node_id,
        last_log_id,
    ))
}

pub(crate) fn membership_in(bytes: &Bytes) -> Result<StoredMembership, MessageError> {
    membership::decode_stored(bytes).map_err(|error| MessageError::Malformed {
        expected: "a membership",
        error: error.to_string(),
    })
}

pub(crate) fn digest_out(digest: u128) -> Bytes {
    Bytes::copy_from_slice(&digest.to_be_bytes())
}

pub(crate) fn digest_in(bytes: &Bytes) -> Result<u128, MessageError> {
    let bytes = bytes
        .as_ref()
        .try_into()
        .map_err(|_| MessageError::Malformed {
            expected: "a digest of 16 bytes",
            error: format!("found {}", bytes.len()),
        })?;
    Ok(u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::record::LogEntry;
    use openraft::EntryPayload;

    #[test]
    fn an_append_survives_the_round_trip_with_its_checksummed_records() {
        let entry = LogEntry {
            log_id: LogId::new_term_index(2, 5),
            payload: EntryPayload::Blank,
        };
        let request = AppendEntriesRequest {
            vote: Vote::new_committed(2, 1),
            prev_log_id: Some(LogId::new_term_index(1, 4)),
            entries: vec![entry],
            leader_commit: None,
        };
        let mut sent = append_out(&request, None, (Sender::default(), 300));
        let arrived = append_in(sent.clone()).unwrap();
        assert_eq!(arrived.vote, request.vote);
        assert_eq!(arrived.prev_log_id, request.prev_log_id);
        assert_eq!(arrived.entries, request.entries);
        assert_eq!(arrived.leader_commit, None);
        let mut altered = sent.records[0].to_vec();
        altered[10] ^= 1;
        sent.records[0] = altered.into();
        assert!(matches!(append_in(sent), Err(MessageError::Record(_))));
    }

    #[test]
    fn peers_understand_how_much_room_another_has() {
        for room in [
            DiskPressure::Critical,
            DiskPressure::Low,
            DiskPressure::Normal,
        ] {
            assert_eq!(disk_pressure_in(disk_pressure_out(room)), room);
        }
        assert_eq!(disk_pressure_in(9), DiskPressure::Critical);
    }

    #[test]
    fn every_append_result_survives_the_round_trip() {
        let log_id = LogId::new_term_index(2, 5);
        for result in [
            Ok(None),
            Ok(Some(log_id)),
            Err(StreamAppendError::Conflict(log_id)),
            Err(StreamAppendError::HigherVote(Vote::new(3, 2))),
        ] {
            let arrived =
                appended_in(appended_out(&result, 7, DiskPressure::Normal, false)).unwrap();
            assert_eq!(
                arrived.map_err(|e| e.to_string()),
                result.map_err(|e| e.to_string())
            );
        }
    }
}
