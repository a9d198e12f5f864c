//! Log records in their stored form, for tests that leave a log as only a crash, or a bug, would.

use bytes::Bytes;
use flotilla_replica::LogDevice;

/// The kinds of records, with their bodies.
pub(crate) enum Payload {
    /// A new leader's first record.
    Blank,
    /// That a replica has this digest after the entry at the index.
    DigestReport { node: u8, index: u8, digest: u8 },
}

/// The bytes of a record.
pub(crate) fn record(term: u64, index: u64, body: Payload) -> Bytes {
    let (kind, body) = match body {
        Payload::Blank => (0, Vec::new()),
        Payload::DigestReport {
            node,
            index,
            digest,
        } => (3, vec![1, 0, 1, node, index, digest]),
    };
    let mut rest = vec![1, kind];
    rest.extend(term.to_be_bytes());
    rest.extend(index.to_be_bytes());
    rest.extend(body);
    let checksum = crc32fast::hash(&rest).to_be_bytes();
    [checksum.as_slice(), &rest].concat().into()
}

/// The term and the index of the last record of a log.
pub(crate) fn last_of(log: &dyn LogDevice) -> (u64, u64) {
    let mut last = None;
    log.read(0, u64::MAX, &mut |_, bytes| {
        last = Some((number(&bytes[6..14]), number(&bytes[14..22])));
        true
    })
    .expect("a log");
    last.expect("a record")
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes.try_into().expect("eight bytes"))
}
