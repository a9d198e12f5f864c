//! The encoding of one log entry, on disk and between peers.
//!
//! ```text
//! crc32 of the rest (4) | version (1) | kind (1) | term (8) | index (8) | body
//! ```
//! Numbers are big-endian. The body is opaque here: an engine entry, a control or a membership,
//! each with its own version inside.

use crate::membership::{self, Membership, MembershipError, term_of};
use crate::proposal::{Commands, Control, Proposal};
use crate::raft::type_config::{LogId, TypeConfig};
use bytes::{BufMut, Bytes, BytesMut};
use flotilla_engine::codec::DecodeError;
use openraft::EntryPayload;

/// A log entry in openraft's form.
pub(crate) type LogEntry = openraft::type_config::alias::EntryOf<TypeConfig>;

const VERSION: u8 = 1;
const CHECKSUM_BYTES: usize = 4;
const HEADER_BYTES: usize = CHECKSUM_BYTES + 1 + 1 + 8 + 8;

const KIND_BLANK: u8 = 0;
const KIND_COMMANDS: u8 = 1;
const KIND_MEMBERSHIP: u8 = 2;
const KIND_CONTROL: u8 = 3;

/// Bytes that are not an entry of this version.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Fewer bytes than a header.
    #[error("expected at least {HEADER_BYTES} bytes, but found {0}")]
    TooShort(usize),
    /// The bytes were altered after they were written.
    #[error("expected the checksum {expected:08x}, but the bytes give {found:08x}")]
    Checksum {
        /// The stored checksum.
        expected: u32,
        /// The checksum of the bytes.
        found: u32,
    },
    /// A version that this build does not know.
    #[error("expected version {VERSION}, but found {0}: written by a newer version?")]
    VersionUnknown(u8),
    /// A kind that this build does not know.
    #[error("expected a known kind of entry, but found {0}: written by a newer version?")]
    KindUnknown(u8),
    /// A body that does not fit its kind.
    #[error("expected a body of its kind, but {0}")]
    Body(#[from] DecodeError),
    /// An invalid membership.
    #[error("expected a membership, but {0}")]
    Membership(String),
}

impl From<MembershipError> for RecordError {
    fn from(error: MembershipError) -> Self {
        Self::Membership(error.to_string())
    }
}

/// The bytes of an entry.
pub(crate) fn encode(entry: &LogEntry) -> Bytes {
    let (kind, body) = match &entry.payload {
        EntryPayload::Blank => (KIND_BLANK, Bytes::new()),
        EntryPayload::Normal(Proposal::Commands(commands)) => {
            (KIND_COMMANDS, commands.bytes().clone())
        }
        EntryPayload::Normal(Proposal::Control(control)) => (KIND_CONTROL, control.encode().into()),
        EntryPayload::Membership(proposed) => (
            KIND_MEMBERSHIP,
            membership::encode_proposed(proposed).into(),
        ),
    };
    let mut bytes = BytesMut::with_capacity(HEADER_BYTES + body.len());
    bytes.put_u32(0);
    bytes.put_u8(VERSION);
    bytes.put_u8(kind);
    bytes.put_u64(term_of(&entry.log_id));
    bytes.put_u64(entry.log_id.index());
    bytes.extend_from_slice(&body);
    let checksum = crc32fast::hash(&bytes[CHECKSUM_BYTES..]);
    bytes[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_be_bytes());
    bytes.freeze()
}

/// Verifies and decodes an entry; its commands stay encoded until they are applied.
pub(crate) fn decode(bytes: Bytes) -> Result<LogEntry, RecordError> {
    let log_id = verify(&bytes)?;
    let kind = bytes[CHECKSUM_BYTES + 1];
    let body = bytes.slice(HEADER_BYTES..);
    let payload = match kind {
        KIND_BLANK => EntryPayload::Blank,
        KIND_COMMANDS => EntryPayload::Normal(Proposal::Commands(Commands::from_bytes(body))),
        KIND_CONTROL => EntryPayload::Normal(Proposal::Control(Control::decode(&body)?)),
        KIND_MEMBERSHIP => EntryPayload::Membership(decode_membership(&body)?),
        unknown => return Err(RecordError::KindUnknown(unknown)),
    };
    Ok(LogEntry { log_id, payload })
}

/// Verifies the bytes and decodes only the log id.
pub(crate) fn verify(bytes: &[u8]) -> Result<LogId, RecordError> {
    if bytes.len() < HEADER_BYTES {
        return Err(RecordError::TooShort(bytes.len()));
    }
    let (checksum, rest) = bytes.split_at(CHECKSUM_BYTES);
    let expected = u32::from_be_bytes(array(checksum));
    let found = crc32fast::hash(rest);
    if expected != found {
        return Err(RecordError::Checksum { expected, found });
    }
    if rest[0] != VERSION {
        return Err(RecordError::VersionUnknown(rest[0]));
    }
    let term = u64::from_be_bytes(array(&rest[2..10]));
    let index = u64::from_be_bytes(array(&rest[10..18]));
    Ok(LogId::new_term_index(term, index))
}

fn decode_membership(body: &[u8]) -> Result<Membership, RecordError> {
    Ok(membership::decode_proposed(body)?)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes
        .try_into()
        .expect("the caller cuts exactly N bytes out of a header of checked length")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::membership::Member;
    use std::collections::{BTreeMap, BTreeSet};

    fn entries() -> Vec<LogEntry> {
        let members = BTreeMap::from([(1, Member::default())]);
        let membership = Membership::new(vec![BTreeSet::from([1])], members).unwrap();
        let commands = Commands::from_bytes(Bytes::from_static(b"opaque"));
        [
            EntryPayload::Blank,
            EntryPayload::Normal(Proposal::Commands(commands)),
            EntryPayload::Normal(Proposal::Control(Control::PurgeFloor { index: 8 })),
            EntryPayload::Membership(membership),
        ]
        .into_iter()
        .zip(5..)
        .map(|(payload, index)| LogEntry {
            log_id: LogId::new_term_index(2, index),
            payload,
        })
        .collect()
    }

    #[test]
    fn every_kind_of_entry_survives_the_round_trip() {
        for entry in entries() {
            assert_eq!(decode(encode(&entry)).unwrap(), entry);
        }
    }

    #[test]
    fn the_bytes_of_an_entry_do_not_change() {
        let blank = LogEntry {
            log_id: LogId::new_term_index(2, 5),
            payload: EntryPayload::Blank,
        };
        let rest = [1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 5];
        assert_eq!(encode(&blank)[4..], rest);
        assert_eq!(encode(&blank)[..4], crc32fast::hash(&rest).to_be_bytes());
    }

    #[test]
    fn any_single_altered_or_missing_byte_is_found() {
        for entry in entries() {
            let good = encode(&entry);
            for position in 0..good.len() {
                let mut bad = good.to_vec();
                bad[position] ^= 0x10;
                assert!(decode(bad.into()).is_err(), "byte {position} of {entry:?}");
                assert!(
                    decode(good.slice(..position)).is_err(),
                    "cut at {position} of {entry:?}"
                );
            }
        }
    }
}
