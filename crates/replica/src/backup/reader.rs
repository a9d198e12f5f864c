//! Reads rows from the bytes of a backup, and trusts none of them.

use super::fault::BackupFault;
use super::header::{BackupHeader, End};
use super::{BODY_BYTES_MAX, FORMAT, KIND_END, KIND_HEADER, KIND_ROWS, MAGIC};
use crate::network::local::HOME_GROUP_ID;
use crate::state::rows;
use crate::state::snapshot::Unpacker;
use flotilla_engine::store::Writes;
use std::io::Read;
use xxhash_rust::xxh3::Xxh3;

/// The bytes before a block's body: kind, length, checksum.
const FRAME_BYTES: usize = 1 + 4 + 4;

/// Reads a backup from front to back.
pub(super) struct Reader<R> {
    input: Input<R>,
    header: BackupHeader,
    /// Unset after the end.
    unpacker: Option<Unpacker>,
    /// The last key so far: keys are ascending.
    key_last: Vec<u8>,
}

/// The file, with the read position and the digest of what was read.
struct Input<R> {
    file: R,
    offset: u64,
    hasher: Xxh3,
}

/// One block with a verified body.
struct Block {
    offset: u64,
    /// Of all bytes before it.
    digest: u128,
    kind: u8,
    checksum: u32,
    body: Vec<u8>,
}

impl<R: Read> Reader<R> {
    /// Reads up to the header.
    pub(super) fn open(file: R) -> Result<Self, BackupFault> {
        let mut input = Input {
            file,
            offset: 0,
            hasher: Xxh3::new(),
        };
        let mut beginning = [0; MAGIC.len()];
        match input.fill(&mut beginning) {
            Err(BackupFault::CutShort(_)) => return Err(BackupFault::Foreign),
            filled => filled?,
        }
        if &beginning != MAGIC {
            return Err(BackupFault::Foreign);
        }
        let mut format = [0];
        input.fill(&mut format)?;
        if format != [FORMAT] {
            return Err(BackupFault::FormatUnknown(format[0]));
        }
        let block = input.block()?;
        if block.kind != KIND_HEADER {
            return Err(block.damaged("it is not a header"));
        }
        let header = BackupHeader::decode(&block.body);
        let header = header.map_err(|error| block.damaged(error))?;
        if header.group_id != HOME_GROUP_ID {
            return Err(BackupFault::GroupUnknown(header.group_id));
        }
        Ok(Self {
            input,
            header,
            unpacker: Some(Unpacker::default()),
            key_last: Vec::new(),
        })
    }

    /// The backup's header.
    pub(super) fn header(&self) -> &BackupHeader {
        &self.header
    }

    /// The number of bytes read.
    pub(super) fn offset(&self) -> u64 {
        self.input.offset
    }

    /// The next rows; `None` after the end, when everything is verified.
    pub(super) fn next(&mut self) -> Result<Option<Writes>, BackupFault> {
        let Some(mut unpacker) = self.unpacker.take() else {
            return Ok(None);
        };
        let block = self.input.block()?;
        match block.kind {
            KIND_ROWS => {
                let unpacked = unpacker.rows(block.checksum, &block.body);
                let rows = unpacked.map_err(|error| block.damaged(error))?;
                self.check_keys(&rows)
                    .map_err(|reason| block.damaged(reason))?;
                self.unpacker = Some(unpacker);
                Ok(Some(rows))
            }
            KIND_END => {
                self.end(unpacker, &block)?;
                Ok(None)
            }
            unknown => Err(block.damaged(format!("its kind {unknown} is unknown"))),
        }
    }

    /// Keys ascend from block to block, and none is a node's own.
    fn check_keys(&mut self, rows: &Writes) -> Result<(), String> {
        let (Some(first), Some(last)) = (rows.keys().next(), rows.keys().next_back()) else {
            return Err("it has no rows".to_owned());
        };
        if first <= self.key_last.as_slice() || last >= rows::traveling().to.as_slice() {
            return Err("its rows are out of order".to_owned());
        }
        self.key_last = last.to_vec();
        Ok(())
    }

    fn end(&mut self, unpacker: Unpacker, block: &Block) -> Result<(), BackupFault> {
        let end = End::decode(&block.body).map_err(|error| block.damaged(error))?;
        if end.digest != block.digest {
            return Err(block.damaged("its digest is not that of the blocks before it"));
        }
        let ended = unpacker.end(end.row_count, end.rows_digest);
        ended.map_err(|error| block.damaged(error))?;
        let end = self.input.offset;
        match self.input.fill(&mut [0]) {
            Err(BackupFault::CutShort(_)) => Ok(()),
            Err(error) => Err(error),
            Ok(()) => Err(BackupFault::Trailing(end)),
        }
    }
}

impl<R: Read> Input<R> {
    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), BackupFault> {
        let mut room = &mut *bytes;
        while !room.is_empty() {
            match self.file.read(room) {
                Ok(0) => return Err(BackupFault::CutShort(self.offset)),
                Ok(count) => {
                    self.offset += count as u64;
                    room = &mut room[count..];
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let offset = self.offset;
                    return Err(BackupFault::Unreadable { offset, error });
                }
            }
        }
        self.hasher.update(bytes);
        Ok(())
    }

    fn block(&mut self) -> Result<Block, BackupFault> {
        let (offset, digest) = (self.offset, self.hasher.digest128());
        let mut frame = [0; FRAME_BYTES];
        self.fill(&mut frame)?;
        let [kind, l0, l1, l2, l3, c0, c1, c2, c3] = frame;
        let length = u32::from_be_bytes([l0, l1, l2, l3]);
        let mut block = Block {
            offset,
            digest,
            kind,
            checksum: u32::from_be_bytes([c0, c1, c2, c3]),
            body: Vec::new(),
        };
        if length > BODY_BYTES_MAX {
            return Err(block.damaged(format!("its length of {length} bytes is impossible")));
        }
        self.fill_body(&mut block.body, length)?;
        let found = crc32fast::hash(&block.body);
        if found != block.checksum {
            let expected = block.checksum;
            let reason = format!("its checksum is {expected:08x} and its bytes give {found:08x}");
            return Err(block.damaged(reason));
        }
        Ok(block)
    }

    /// Allocates as bytes arrive: a wrong length costs nothing.
    fn fill_body(&mut self, body: &mut Vec<u8>, length: u32) -> Result<(), BackupFault> {
        const STEP_BYTES: usize = 1 << 20;
        let mut left = usize::try_from(length).unwrap_or(usize::MAX);
        while left > 0 {
            let begin = body.len();
            body.resize(begin + left.min(STEP_BYTES), 0);
            self.fill(&mut body[begin..])?;
            left -= body.len() - begin;
        }
        Ok(())
    }
}

impl Block {
    fn damaged(&self, reason: impl ToString) -> BackupFault {
        BackupFault::Damaged {
            offset: self.offset,
            reason: reason.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::header::BackupOrigin;
    use super::super::writer::Writer;
    use super::*;
    use flotilla_engine::store::MemoryStore;
    use std::sync::Arc;

    /// A backup of a group, without rows.
    fn backup_of(group_id: u64) -> Vec<u8> {
        let header = BackupHeader {
            cluster_id: "cluster".to_owned(),
            group_id,
            node_id: 1,
            term: 1,
            index: 1,
            digest: 0,
            now_ms: 0,
            taken_at_ms: 0,
            origin: BackupOrigin::Serving,
            version: String::new(),
        };
        let mut writer = Writer::new(header, Arc::new(MemoryStore::default()));
        let mut bytes = Vec::new();
        while let Some(piece) = writer.next().unwrap() {
            bytes.extend_from_slice(&piece);
        }
        bytes
    }

    #[test]
    fn the_backup_of_another_raft_group_is_refused() {
        assert!(Reader::open(backup_of(0).as_slice()).is_ok());
        let other = backup_of(7);
        let refused = Reader::open(other.as_slice());
        assert!(matches!(refused, Err(BackupFault::GroupUnknown(7))));
    }
}
