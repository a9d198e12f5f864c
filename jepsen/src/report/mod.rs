//! The report of a run.

mod document;
mod timeline;

pub use document::{Part, figures, planted, rewrite};
pub use timeline::draw;

use crate::checker::{Violation, longest_outage_us};
use crate::history::{History, Outcome};
use crate::run::Plan;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The report of a run.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The plan in one line, to repeat it.
    pub plan: String,
    /// The seed.
    pub seed: u64,
    /// The nemesis.
    pub nemesis: String,
    /// How long the run took, in seconds.
    pub seconds: u64,
    /// How many operations of each workload had each outcome: ok, fail, unknown.
    pub operations: BTreeMap<String, [u64; 3]>,
    /// The number of faults.
    pub faults: usize,
    /// A description of each fault.
    pub done: Vec<String>,
    /// The time from each healing until the cluster served again, in milliseconds.
    pub recoveries_ms: Vec<u64>,
    /// The longest time between two successful operations, in milliseconds.
    pub outage_ms_max: u64,
    /// The violations; empty if every check passed.
    pub violations: Vec<Violation>,
    /// Remarks about how it was run.
    pub remarks: Vec<String>,
    /// Where history, logs and timeline are, if they were kept.
    pub kept: Option<PathBuf>,
}

impl Report {
    pub(crate) fn new(
        plan: &Plan,
        history: &History,
        recoveries_ms: Vec<u64>,
        violations: Vec<Violation>,
    ) -> Self {
        let mut operations: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        for operation in &history.operations {
            let counts = operations.entry(operation.workload.clone()).or_default();
            counts[place(operation.outcome)] += 1;
        }
        Self {
            plan: plan.line(),
            seed: plan.seed,
            nemesis: plan.nemesis.name().to_owned(),
            seconds: 0,
            operations,
            faults: history.faults.len(),
            done: history
                .faults
                .iter()
                .map(|fault| fault.what.clone())
                .collect(),
            recoveries_ms,
            outage_ms_max: longest_outage_us(history) / 1_000,
            violations,
            remarks: Vec::new(),
            kept: None,
        }
    }

    pub(crate) fn without_stage(plan: &Plan, violation: Violation) -> Self {
        Self::new(plan, &History::default(), Vec::new(), vec![violation])
    }

    /// Whether every check passed.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.violations.is_empty()
    }

    /// How many operations had an outcome, in total.
    #[must_use]
    pub fn count(&self, outcome: Outcome) -> u64 {
        let counts = self.operations.values();
        counts.map(|counts| counts[place(outcome)]).sum()
    }

    /// Keeps history, verdict, timeline and the nodes' logs.
    pub(crate) fn keep(&mut self, folder: &Path, history: &History, logs: &Path) {
        match write(folder, self, history, logs) {
            Ok(()) => self.kept = Some(folder.to_owned()),
            Err(error) => self
                .remarks
                .push(format!("{} cannot be written: {error}", folder.display())),
        }
    }

    fn json(&self) -> Value {
        let violations: Vec<&str> = self.violations.iter().map(|one| one.0.as_str()).collect();
        json!({
            "plan": self.plan,
            "seed": self.seed,
            "nemesis": self.nemesis,
            "operations": self.operations,
            "faults": self.faults,
            "recoveries_ms": self.recoveries_ms,
            "outage_ms_max": self.outage_ms_max,
            "violations": violations,
            "remarks": self.remarks,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (workload, [ok, fail, unknown]) in &self.operations {
            writeln!(
                formatter,
                "{workload:>10}: {ok} ok, {fail} fail, {unknown} unknown"
            )?;
        }
        let slowest_ms = self.recoveries_ms.iter().max().copied().unwrap_or(0);
        writeln!(
            formatter,
            "{} faults; served again within {slowest_ms} ms of healing; longest outage {} ms",
            self.faults, self.outage_ms_max
        )?;
        for remark in &self.remarks {
            writeln!(formatter, "note: {remark}")?;
        }
        for violation in self.violations.iter().take(VIOLATIONS_SHOWN) {
            let text: String = violation.0.chars().take(VIOLATION_CHARACTERS).collect();
            writeln!(formatter, "VIOLATION: {text}")?;
        }
        if let Some(kept) = &self.kept {
            writeln!(formatter, "kept in {}", kept.display())?;
        }
        let verdict = match self.violations.len() {
            0 => "no violation".to_owned(),
            count => format!("{count} violations"),
        };
        write!(formatter, "{verdict}; repeat with {}", self.plan)
    }
}

/// How many violations are printed, and how much of each; the kept verdict has all of them.
const VIOLATIONS_SHOWN: usize = 20;
const VIOLATION_CHARACTERS: usize = 600;

fn place(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Ok => 0,
        Outcome::Fail => 1,
        Outcome::Unknown => 2,
    }
}

fn write(folder: &Path, report: &Report, history: &History, logs: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    history.write(&folder.join("history.jsonl"))?;
    let verdict = serde_json::to_string_pretty(&report.json())?;
    fs::write(folder.join("verdict.json"), verdict)?;
    fs::write(folder.join("timeline.svg"), draw(history))?;
    for log in fs::read_dir(logs)? {
        let log = log?;
        fs::copy(log.path(), folder.join(log.file_name()))?;
    }
    Ok(())
}
