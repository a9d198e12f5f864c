//! Detects damage in RocksDB's files that would make RocksDB loop forever.
//!
//! RocksDB's reader of write-ahead logs and manifests loops at a record whose type belongs to
//! recycled logs, in a log that is not recycled: it refuses the record without advancing past it
//! (`log_reader.cc` of 11.8, `ReadPhysicalRecord`). One wrong bit, or a torn write, is enough for
//! that. We recycle no logs, so such a type is damage; this module looks for it before a database
//! is opened.

use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

/// Records do not cross the blocks of a file.
const BLOCK_BYTES: usize = 32 << 10;
/// Checksum, length and type.
const HEADER_BYTES: usize = 7;
/// The types of records in recycled logs (`log_format.h`).
const RECYCLED_TYPES: [u8; 6] = [5, 6, 7, 8, 11, 131];

/// A record that RocksDB would read again and again.
#[derive(Debug, thiserror::Error)]
#[error("the record at byte {offset} of {} has a type that is never written", file.display())]
pub(crate) struct Damage {
    file: PathBuf,
    offset: usize,
}

/// Checks the logs and manifests of all databases in a folder, if it exists.
///
/// # Errors
/// [`io::Error`] if they cannot be read.
pub(crate) fn find_damage(folder: &Path) -> io::Result<Option<Damage>> {
    if !folder.exists() {
        return Ok(None);
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                folders.push(path);
            } else if is_framed(&path)
                && let Some(offset) = damaged_record(&path)?
            {
                return Ok(Some(Damage { file: path, offset }));
            }
        }
    }
    Ok(None)
}

fn is_framed(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    path.extension().is_some_and(|ending| ending == "log")
        || name.is_some_and(|name| name.starts_with("MANIFEST-"))
}

/// The offset of a record with such a type.
fn damaged_record(path: &Path) -> io::Result<Option<usize>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut block = vec![0; BLOCK_BYTES];
    let mut start = 0;
    loop {
        let length = fill(&mut file, &mut block)?;
        if let Some(place) = damaged_header(&block[..length]) {
            return Ok(Some(start + place));
        }
        if length < BLOCK_BYTES {
            return Ok(None);
        }
        start += length;
    }
}

/// The offset of a header in a block with such a type. It follows the headers as RocksDB does;
/// RocksDB itself reports any other damage.
fn damaged_header(block: &[u8]) -> Option<usize> {
    let mut place = 0;
    while let Some(header) = block.get(place..place + HEADER_BYTES) {
        let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
        let kind = header[6];
        if RECYCLED_TYPES.contains(&kind) {
            return Some(place);
        }
        let is_filling = kind == 0 && length == 0;
        if is_filling {
            return None;
        }
        place += HEADER_BYTES + length;
    }
    None
}

/// Fills the buffer, and less only at the end of the file.
fn fill(file: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < room.len() {
        match file.read(&mut room[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use super::HEADER_BYTES;
    use crate::log::device::{Durability, Operation};
    use crate::rocks_storage::RocksStorage;
    use crate::storage::{Storage, StorageError};
    use std::fs;
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;

    /// A log of this many records, closed, and its newest file.
    fn written(records: u64) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let log = RocksStorage.open_log(directory.path()).unwrap();
        for index in 0..records {
            let record = vec![7; 500].into();
            let put = Operation::Put { index, record };
            log.write(&[put], Durability::Deferred).unwrap();
        }
        drop(log);
        let files = fs::read_dir(directory.path().join("log")).unwrap();
        let files = files.map(|entry| entry.unwrap().path());
        let logs = files.filter(|path| path.extension().is_some_and(|ending| ending == "log"));
        let newest = logs.max().unwrap();
        (directory, newest)
    }

    fn refusal(directory: &Path) -> String {
        match RocksStorage.open_log(directory) {
            Err(StorageError::Corrupt(text)) => text,
            Err(error) => panic!("expected it to be corrupt, but {error}"),
            Ok(_) => panic!("expected it to be corrupt, but it was opened"),
        }
    }

    #[test]
    fn a_wrong_bit_in_the_type_of_a_record_is_refused_and_not_read_for_ever() {
        for records in [2, 200] {
            let (directory, file) = written(records);
            let mut bytes = fs::read(&file).unwrap();
            let runs_to_the_end = |at: &usize| {
                let length = u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]);
                bytes[at + 6] == 1 && at + HEADER_BYTES + usize::from(length) == bytes.len()
            };
            let last = (0..bytes.len() - HEADER_BYTES).rfind(runs_to_the_end);
            bytes[last.unwrap() + 6] ^= 4;
            fs::write(&file, bytes).unwrap();
            let refused = refusal(directory.path());
            assert!(refused.contains("never written"), "{refused}");
        }
    }

    #[test]
    fn a_torn_tail_that_looks_like_a_recycled_record_is_refused() {
        let (directory, file) = written(100);
        let mut bytes = fs::read(&file).unwrap();
        bytes.extend(0..100u8);
        fs::write(&file, bytes).unwrap();
        let refused = refusal(directory.path());
        assert!(refused.contains("never written"), "{refused}");
    }

    #[test]
    fn whole_logs_and_those_that_end_early_are_opened() {
        for missing in [0, 1, 100, 505] {
            let (directory, file) = written(300);
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len() - missing]).unwrap();
            drop(RocksStorage.open_log(directory.path()).unwrap());
        }
    }
}
