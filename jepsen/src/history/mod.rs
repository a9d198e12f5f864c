//! The calls of clients and their outcomes.

mod fault;
mod operation;
mod recorder;

pub use fault::Fault;
pub use operation::{Operation, Outcome};
pub use recorder::{Moment, Recorder};
pub(crate) use recorder::{describe_error, outcome_of};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Everything that a run saw: the operations, the faults, and the final reads.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In the order in which they returned.
    pub operations: Vec<Operation>,
    /// In the order of their injection.
    pub faults: Vec<Fault>,
    /// The final read of each workload, by name.
    pub final_reads: BTreeMap<String, Value>,
    /// When the last client stopped working; later calls only read the result.
    pub work_until_us: Moment,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "snake_case")]
enum Line {
    Operation(Operation),
    Fault(Fault),
    FinalRead { workload: String, value: Value },
    Work { until_us: Moment },
}

impl History {
    /// The operations of one workload.
    pub fn of<'a>(&'a self, workload: &'a str) -> impl Iterator<Item = &'a Operation> {
        let operations = self.operations.iter();
        operations.filter(move |operation| operation.workload == workload)
    }

    /// The final read of a workload; null if the run did not get there.
    #[must_use]
    pub fn final_read(&self, workload: &str) -> &Value {
        self.final_reads.get(workload).unwrap_or(&Value::Null)
    }

    /// Writes it as JSON, one object to a line.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, file: &Path) -> std::io::Result<()> {
        let mut out = BufWriter::new(File::create(file)?);
        let operations = self.operations.iter().cloned().map(Line::Operation);
        let faults = self.faults.iter().cloned().map(Line::Fault);
        let reads = self.final_reads.iter().map(|(workload, value)| {
            let workload = workload.clone();
            let value = value.clone();
            Line::FinalRead { workload, value }
        });
        let work = Line::Work {
            until_us: self.work_until_us,
        };
        for line in operations.chain(faults).chain(reads).chain([work]) {
            serde_json::to_writer(&mut out, &line)?;
            out.write_all(b"\n")?;
        }
        out.flush()
    }

    /// Reads what [`History::write`] wrote, so that a kept history can be checked again.
    ///
    /// # Errors
    /// When the text is not a history.
    pub fn parse(text: &str) -> serde_json::Result<Self> {
        let mut history = Self::default();
        let mut work_until_us = None;
        for line in text.lines() {
            match serde_json::from_str(line)? {
                Line::Operation(operation) => history.operations.push(operation),
                Line::Fault(fault) => history.faults.push(fault),
                Line::FinalRead { workload, value } => {
                    history.final_reads.insert(workload, value);
                }
                Line::Work { until_us } => work_until_us = Some(until_us),
            }
        }
        // An older history lacks this line: all of it counts as work.
        let last = history.operations.iter().map(|one| one.returned_us).max();
        history.work_until_us = work_until_us.or(last).unwrap_or(0);
        Ok(history)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_written_history_is_read_again_as_it_was() {
        let operation = Operation::sample("starts", Outcome::Unknown);
        let fault = Fault {
            nemesis: "kill-leader".to_owned(),
            what: "SIGKILL node 1".to_owned(),
            started_us: 5,
            ended_us: 9,
        };
        let history = History {
            operations: vec![operation],
            faults: vec![fault],
            final_reads: BTreeMap::from([("starts".to_owned(), json!([1]))]),
            work_until_us: 8,
        };
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.jsonl");
        history.write(&file).unwrap();
        let again = History::parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(again.operations, history.operations);
        assert_eq!(again.faults, history.faults);
        assert_eq!(again.final_reads, history.final_reads);
        assert_eq!(again.work_until_us, history.work_until_us);
    }
}
