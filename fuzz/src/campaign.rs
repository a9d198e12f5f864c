//! Runs a target on its corpus, then on mutations of it from one seed.
//!
//! Accepted inputs are mutated further, so that inputs drift into the language and not only away from it.

use crate::failure::Failure;
use crate::journal::Journal;
use crate::mutator::Mutator;
use crate::target::{Target, Verdict};
use std::any::Any;
use std::io;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// When a campaign ends.
#[derive(Clone, Copy, Debug)]
pub enum Budget {
    /// After this many mutations: the same ones for the same seed.
    Mutations(u64),
    /// After this time.
    Time(Duration),
}

/// How a target is fuzzed.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The target.
    pub target: Target,
    /// The seed of all mutations.
    pub seed: u64,
    /// How many mutations to run after the corpus.
    pub budget: Budget,
    /// How long one input may take before it counts as an endless loop.
    pub limit: Duration,
}

/// The result of a campaign.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Inputs that the target accepted.
    pub accepted_count: u64,
    /// Inputs that it rejected.
    pub refused_count: u64,
    /// The first fault: it ends the campaign.
    pub failure: Option<Failure>,
}

/// How many accepted mutations are mutated further, beside the corpus.
const KEPT_MAX: usize = 512;
/// How often to check whether an input takes too long.
const LOOK_EVERY: Duration = Duration::from_millis(100);

impl Campaign {
    /// Runs the corpus and mutations of it. `journal` is the path of a file that holds the current
    /// input: if the process dies, the file remains.
    ///
    /// # Errors
    /// If the journal cannot be written.
    ///
    /// # Panics
    /// When the corpus is empty.
    pub fn run(self, corpus: Vec<Vec<u8>>, journal: &Path) -> io::Result<Report> {
        assert!(!corpus.is_empty(), "there is nothing to mutate");
        let journal = Arc::new(Journal::create(journal)?);
        let (done, outcome) = sync_channel(1);
        // A separate thread: one that loops for ever is left behind.
        let worker = Arc::clone(&journal);
        thread::spawn(move || done.send(self.explore(corpus, &worker)));
        loop {
            match outcome.recv_timeout(LOOK_EVERY) {
                Ok(report) => {
                    journal.close()?;
                    return report;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => unreachable!("panics are caught"),
            }
            if let Some(input) = journal.stuck(self.limit) {
                let reason = format!("it takes longer than {:?}", self.limit);
                return Ok(Report {
                    failure: Some(self.failure(input, reason)),
                    ..Report::default()
                });
            }
        }
    }

    fn explore(&self, mut inputs: Vec<Vec<u8>>, journal: &Journal) -> io::Result<Report> {
        let begun = Instant::now();
        let mut report = Report::default();
        for input in &inputs {
            self.execute(input, journal, &mut report)?;
            if report.failure.is_some() {
                return Ok(report);
            }
        }
        let mut mutator = Mutator::new(self.seed, self.target.tokens);
        let (corpus_length, mut mutations_count) = (inputs.len(), 0_u64);
        while report.failure.is_none() && !self.budget.is_used_up(mutations_count, begun) {
            let input = mutator.mutate(&inputs);
            let verdict = self.execute(&input, journal, &mut report)?;
            if verdict == Some(Verdict::Accepted) {
                if inputs.len() < corpus_length + KEPT_MAX {
                    inputs.push(input);
                } else {
                    let place = usize::try_from(mutations_count % KEPT_MAX as u64);
                    inputs[corpus_length + place.expect("it is below KEPT_MAX")] = input;
                }
            }
            mutations_count += 1;
        }
        Ok(report)
    }

    /// Runs one input; `None` if it fails.
    fn execute(
        &self,
        input: &[u8],
        journal: &Journal,
        report: &mut Report,
    ) -> io::Result<Option<Verdict>> {
        journal.begin(input)?;
        let verdict = catch_unwind(|| (self.target.check)(input));
        journal.end();
        match &verdict {
            Ok(Verdict::Accepted) => report.accepted_count += 1,
            Ok(Verdict::Refused) => report.refused_count += 1,
            Err(panic) => {
                report.failure = Some(self.failure(input.to_owned(), reason(panic.as_ref())));
            }
        }
        Ok(verdict.ok())
    }

    fn failure(&self, input: Vec<u8>, reason: String) -> Failure {
        Failure {
            target: self.target.name,
            input,
            reason,
        }
    }
}

impl Budget {
    fn is_used_up(self, mutations_count: u64, begun: Instant) -> bool {
        match self {
            Self::Mutations(mutations_max) => mutations_count >= mutations_max,
            Self::Time(time) => begun.elapsed() >= time,
        }
    }
}

impl Report {
    /// How many inputs ran without a fault.
    #[must_use]
    pub fn executions_count(&self) -> u64 {
        self.accepted_count + self.refused_count
    }
}

/// The message of a panic.
fn reason(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("it panics").to_owned()
}
