//! Verifies a backup: reads everything in it, summarizes it and checks that its rows form a state.

use super::fault::BackupFault;
use super::header::BackupHeader;
use super::reader::Reader;
use crate::membership;
use crate::state::rows;
use flotilla_engine::ENGINE_VERSION;
use flotilla_engine::store::{MemoryStore, Writes};
use std::collections::BTreeMap;
use std::io::Read;

/// A summary of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// The backup's header.
    pub header: BackupHeader,
    /// The members of the cluster at that time.
    pub members: Vec<u64>,
    /// The size of the file.
    pub file_bytes: u64,
    /// A summary per table, by table number; then of the replica's own rows.
    pub tables: Vec<TableSummary>,
}

/// A backup's rows of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    /// The table's name.
    pub name: &'static str,
    /// The number of rows.
    pub rows: u64,
    /// The size of the keys and records, uncompressed.
    pub bytes: u64,
}

impl BackupSummary {
    /// The number of rows over all tables.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// The size of all rows, uncompressed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}

/// Reads a whole backup: verifies every checksum, and decodes every row by its table. Calls
/// `observe` with the number of bytes read. It reads in small pieces too: pass a buffered reader.
///
/// # Errors
/// [`BackupFault`]: what is wrong, where, and what to do.
pub fn verify(
    input: impl Read,
    mut observe: impl FnMut(u64),
) -> Result<BackupSummary, BackupFault> {
    let mut reader = Reader::open(input)?;
    let mut inspection = Inspection::default();
    while let Some(rows) = reader.next()? {
        inspection.add(&rows)?;
        observe(reader.offset());
    }
    inspection.end(reader.header(), reader.offset())
}

/// Stands for all of the replica's own rows, after the engine's tables.
const OWN: u8 = u8::MAX;

/// What was found in the rows so far.
#[derive(Default)]
pub(super) struct Inspection {
    /// By table number.
    tables: BTreeMap<u8, TableSummary>,
    /// The replica's own rows.
    own: MemoryStore,
}

impl Inspection {
    /// Inspects rows.
    pub(super) fn add(&mut self, writes: &Writes) -> Result<(), BackupFault> {
        for (key, record) in writes {
            let record = record.unwrap_or_default();
            let name = if rows::is_own(key) {
                let row = Writes::from([(key, Some(record))]);
                self.own.write(&row);
                rows::check(key, record).map_err(inconsistent)?
            } else {
                flotilla_engine::check_row(key, record).map_err(|error| inconsistent(error.0))?
            };
            let number = if rows::is_own(key) { OWN } else { key[0] };
            let table = self.tables.entry(number).or_insert(TableSummary {
                name,
                rows: 0,
                bytes: 0,
            });
            table.rows += 1;
            table.bytes += (key.len() + record.len()) as u64;
        }
        Ok(())
    }

    /// The result, if it matches the header.
    pub(super) fn end(
        self,
        header: &BackupHeader,
        file_bytes: u64,
    ) -> Result<BackupSummary, BackupFault> {
        let applied_position = rows::applied_position(&self.own).map_err(inconsistent)?;
        if applied_position.log_id != Some(header.log_id())
            || applied_position.digest != header.digest
        {
            return Err(inconsistent(
                "they are not those after the entry that the header names",
            ));
        }
        let agreed = rows::engine_version(&self.own).map_err(inconsistent)?;
        if agreed > ENGINE_VERSION {
            let found =
                format!("they follow engine version {agreed}, and this is {ENGINE_VERSION}");
            return Err(inconsistent(found));
        }
        let members = rows::stored_membership(&self.own).map_err(inconsistent)?;
        if membership::cluster_id(members.membership()).as_ref() != Some(&header.cluster_id) {
            return Err(inconsistent(
                "they are not of the cluster that the header names",
            ));
        }
        Ok(BackupSummary {
            header: header.clone(),
            members: members.nodes().map(|(node_id, _)| *node_id).collect(),
            file_bytes,
            tables: self.tables.into_values().collect(),
        })
    }
}

fn inconsistent(reason: impl ToString) -> BackupFault {
    BackupFault::Inconsistent(reason.to_string())
}
