//! Looking at everything in a backup: what there is, and whether it is a state.

use super::fault::BackupFault;
use super::header::BackupHeader;
use super::reader::Reader;
use crate::membership;
use crate::state::rows;
use flotilla_engine::ENGINE_VERSION;
use flotilla_engine::store::{MemoryStore, Writes};
use flotilla_engine::tables;
use std::collections::BTreeMap;
use std::io::Read;

/// What a backup holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupSummary {
    /// What it is of.
    pub header: BackupHeader,
    /// The members of the cluster then.
    pub members: Vec<u64>,
    /// The size of the file.
    pub file_bytes: u64,
    /// What there is of each table, by the table's number; then the replica's own rows.
    pub tables: Vec<TableSummary>,
}

/// What a backup holds of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSummary {
    /// The table's name.
    pub name: &'static str,
    /// Its rows.
    pub rows: u64,
    /// Their keys and records, uncompressed.
    pub bytes: u64,
}

impl BackupSummary {
    /// How many rows there are in all.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }

    /// What all rows take, uncompressed.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes).sum()
    }
}

/// Reads a whole backup: every checksum, and every row as what it is a row of. `observe` is told how many
/// bytes were read. It reads in small pieces too: give it a buffer.
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

/// What was seen of the rows so far.
#[derive(Default)]
pub(super) struct Inspection {
    /// By their numbers.
    tables: BTreeMap<u8, TableSummary>,
    /// The replica's own.
    own: MemoryStore,
}

impl Inspection {
    /// Looks at rows.
    pub(super) fn add(&mut self, writes: &Writes) -> Result<(), BackupFault> {
        for (key, record) in writes {
            let record = record.unwrap_or_default();
            let name = if rows::is_own(key) {
                let row = Writes::from([(key, Some(record))]);
                self.own.write(&row);
                rows::check(key, record).map_err(inconsistent)?
            } else {
                tables::check_row(key, record).map_err(|error| inconsistent(error.0))?
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

    /// What was seen, if it is what the header says.
    pub(super) fn end(
        self,
        header: &BackupHeader,
        file_bytes: u64,
    ) -> Result<BackupSummary, BackupFault> {
        let progress = rows::progress(&self.own).map_err(inconsistent)?;
        if progress.log_id != Some(header.log_id()) || progress.digest != header.digest {
            return Err(inconsistent(
                "they are not of the entry that the header names",
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
