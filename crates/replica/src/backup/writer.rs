//! Writes rows in the format of a backup.

use super::header::{BackupHeader, End};
use super::{FORMAT, KIND_END, KIND_HEADER, KIND_ROWS, MAGIC};
use crate::state::snapshot::{Packer, Part, PartError};
use crate::state::store::SharedReader;
use bytes::Bytes;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The bytes of a backup, part by part, from rows that must not change meanwhile.
pub(super) struct Writer {
    /// Comes first; unset once it was written.
    header: Option<BackupHeader>,
    packer: Packer,
    /// Over all bytes so far.
    hasher: Xxh3,
}

impl Writer {
    pub(super) fn new(header: BackupHeader, rows: Arc<dyn SharedReader>) -> Self {
        Self {
            header: Some(header),
            packer: Packer::new(rows),
            hasher: Xxh3::new(),
        }
    }

    /// The number of rows in the parts so far.
    pub(super) fn rows(&self) -> u64 {
        self.packer.row_count
    }

    /// The next part; `None` after the last.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, PartError> {
        let mut piece = Vec::new();
        if let Some(header) = self.header.take() {
            piece.extend_from_slice(MAGIC);
            piece.push(FORMAT);
            let body = header.encode();
            push_block(&mut piece, KIND_HEADER, crc32fast::hash(&body), &body);
        } else {
            match self.packer.pack()? {
                None => return Ok(None),
                Some(Part::Rows {
                    checksum,
                    compressed,
                }) => push_block(&mut piece, KIND_ROWS, checksum, &compressed),
                Some(Part::End { row_count, digest }) => {
                    let end = End {
                        row_count,
                        rows_digest: digest,
                        digest: self.hasher.digest128(),
                    };
                    let body = end.encode();
                    push_block(&mut piece, KIND_END, crc32fast::hash(&body), &body);
                }
            }
        }
        self.hasher.update(&piece);
        Ok(Some(piece.into()))
    }
}

fn push_block(piece: &mut Vec<u8>, kind: u8, checksum: u32, body: &[u8]) {
    let length = u32::try_from(body.len()).expect("a part is bounded far below 4 GiB");
    piece.push(kind);
    piece.extend_from_slice(&length.to_be_bytes());
    piece.extend_from_slice(&checksum.to_be_bytes());
    piece.extend_from_slice(body);
}
