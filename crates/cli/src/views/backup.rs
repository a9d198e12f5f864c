//! The contents of a backup.

use crate::output::{Row, table};
use crate::time;
use flotilla_server::backup::{BackupOrigin, BackupSummary, TableSummary};
use serde::Serialize;
use std::path::Path;

/// The contents of a backup.
#[derive(Debug, Serialize)]
pub(crate) struct BackupView {
    file: String,
    cluster_id: String,
    node_id: u64,
    /// `serving`, or `directory` for a backup of a stopped node's directory.
    origin: &'static str,
    index: u64,
    term: u64,
    digest: String,
    taken_at_ms: u64,
    version: String,
    members: Vec<u64>,
    file_bytes: u64,
    row_count: u64,
    bytes: u64,
    tables: Vec<TableView>,
}

#[derive(Debug, Serialize)]
struct TableView {
    table: String,
    row_count: u64,
    bytes: u64,
}

impl BackupView {
    /// The contents of the backup in this file.
    pub(crate) fn new(file: &Path, summary: BackupSummary) -> Self {
        let (rows, bytes) = (summary.rows(), summary.bytes());
        let header = summary.header;
        Self {
            file: file.display().to_string(),
            cluster_id: header.cluster_id,
            node_id: header.node_id,
            origin: match header.origin {
                BackupOrigin::Serving => "serving",
                BackupOrigin::Directory => "directory",
            },
            index: header.index,
            term: header.term,
            digest: format!("{:032x}", header.digest),
            taken_at_ms: header.taken_at_ms,
            version: header.version,
            members: summary.members,
            file_bytes: summary.file_bytes,
            row_count: rows,
            bytes,
            tables: summary.tables.into_iter().map(TableView::from).collect(),
        }
    }

    /// The contents as one line.
    pub(crate) fn line(&self) -> String {
        format!(
            "{} holds cluster {} up to index {} of term {}: {} rows, {}",
            self.file,
            self.cluster_id,
            self.index,
            self.term,
            self.row_count,
            bytes(self.file_bytes)
        )
    }

    /// The contents with their origin and the size of each table.
    pub(crate) fn text(&self) -> String {
        let origin = match self.origin {
            "serving" => format!("node {}", self.node_id),
            _ => format!("the data directory of stopped node {}", self.node_id),
        };
        format!(
            "{}\ntaken at {} from {origin}, version {}\n\n{}",
            self.line(),
            time::show(self.taken_at_ms),
            self.version,
            table(&self.tables)
        )
    }
}

impl From<TableSummary> for TableView {
    fn from(summary: TableSummary) -> Self {
        Self {
            table: snake_case(summary.name),
            row_count: summary.rows,
            bytes: summary.bytes,
        }
    }
}

impl Row for TableView {
    const HEADINGS: &'static [&'static str] = &["TABLE", "ROWS", "BYTES"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.table.clone(),
            self.row_count.to_string(),
            self.bytes.to_string(),
        ]
    }
}

/// Converts `ActionRuns` to `action_runs`.
fn snake_case(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(character.to_ascii_lowercase());
    }
    text
}

/// A size with a binary unit.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if count < 1_024 {
        return format!("{count} B");
    }
    let mut tenths = u128::from(count) * 10 / 1_024;
    let mut unit = 0;
    while tenths >= 10_240 && unit + 1 < UNITS.len() {
        tenths /= 1_024;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use flotilla_server::backup::BackupHeader;

    fn view(origin: BackupOrigin) -> BackupView {
        let summary = BackupSummary {
            header: BackupHeader {
                cluster_id: "c1".to_owned(),
                group_id: 0,
                node_id: 2,
                term: 3,
                index: 41,
                digest: 255,
                now_ms: 1_772_357_400_000,
                taken_at_ms: 1_772_357_400_250,
                origin,
                version: "0.1.0".to_owned(),
            },
            members: vec![1, 2, 3],
            file_bytes: 1_536,
            tables: vec![
                TableSummary {
                    name: "ActionRuns",
                    rows: 12,
                    bytes: 900,
                },
                TableSummary {
                    name: "Replica",
                    rows: 4,
                    bytes: 100,
                },
            ],
        };
        BackupView::new(Path::new("monday.flo"), summary)
    }

    #[test]
    fn a_backup_has_exactly_the_published_fields() {
        expect![[r#"{"file":"monday.flo","cluster_id":"c1","node_id":2,"origin":"serving","index":41,"term":3,"digest":"000000000000000000000000000000ff","taken_at_ms":1772357400250,"version":"0.1.0","members":[1,2,3],"file_bytes":1536,"row_count":16,"bytes":1000,"tables":[{"table":"action_runs","row_count":12,"bytes":900},{"table":"replica","row_count":4,"bytes":100}]}"#]]
            .assert_eq(&serde_json::to_string(&view(BackupOrigin::Serving)).expect("printable"));
    }

    #[test]
    fn a_backup_for_people_says_where_it_comes_from() {
        expect![[r#"
            monday.flo holds cluster c1 up to index 41 of term 3: 16 rows, 1.5 KiB
            taken at 2026-03-01T09:30:00.250Z from the data directory of stopped node 2, version 0.1.0

            TABLE        ROWS  BYTES
            action_runs  12    900
            replica      4     100"#]]
        .assert_eq(&view(BackupOrigin::Directory).text());
    }

    #[test]
    fn sizes_have_a_unit() {
        let shown = [0, 1_023, 1_024, 1_536, 10 << 20, 5 << 40, u64::MAX].map(bytes);
        expect!["0 B, 1023 B, 1.0 KiB, 1.5 KiB, 10.0 MiB, 5.0 TiB, 16383.9 PiB"]
            .assert_eq(&shown.join(", "));
    }
}
