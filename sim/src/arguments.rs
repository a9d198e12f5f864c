//! The command line.

use crate::bug::Bug;
use crate::scenario::Scenario;
use crate::world::Plan;
use std::path::PathBuf;
use std::str::FromStr;

/// How long faults are injected by default, in simulated seconds.
const SECONDS_DEFAULT: u64 = 20;

/// The parsed command line.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    pub(crate) plan: Plan,
    pub(crate) task: Task,
    /// The file for the trace; by default only the trace of a failure is kept.
    trace: Option<PathBuf>,
    /// The folder for the traces of failures.
    keep: PathBuf,
}

/// One seed or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Only the plan's seed.
    One,
    /// This many seeds, starting with the plan's.
    Many { seeds: u64 },
}

impl Arguments {
    /// Reads `--seed S`, `--seeds N`, `--seconds N`, `--scenario NAME`, `--bug NAME`, `--trace FILE` and
    /// `--keep FOLDER`.
    ///
    /// # Errors
    /// A sentence that says what is wrong.
    pub(crate) fn read(words: &[String]) -> Result<Self, String> {
        let mut arguments = Self {
            plan: Plan {
                seed: 1,
                scenario: Scenario::Mixed,
                seconds: SECONDS_DEFAULT,
                bug: None,
            },
            task: Task::One,
            trace: None,
            keep: std::env::temp_dir(),
        };
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            let value = words.next();
            let value = value.ok_or_else(|| format!("expected a value after `{flag}`"))?;
            let plan = &mut arguments.plan;
            match flag.as_str() {
                "--seed" => plan.seed = number(value)?,
                "--seeds" => {
                    arguments.task = Task::Many {
                        seeds: number(value)?,
                    }
                }
                "--seconds" => plan.seconds = number(value)?,
                "--scenario" => plan.scenario = Scenario::from_str(value)?,
                "--bug" => plan.bug = Some(Bug::from_str(value)?),
                "--trace" => arguments.trace = Some(value.into()),
                "--keep" => arguments.keep = value.into(),
                _ => return Err(format!("expected an option, but got `{flag}`")),
            }
        }
        Ok(arguments)
    }

    /// The file for the trace, if it is kept.
    pub(crate) fn trace_path(&self, is_sound: bool) -> Option<PathBuf> {
        let failed = || {
            let name = format!(
                "flotilla-sim-{}-{}.trace",
                self.plan.scenario, self.plan.seed
            );
            self.keep.join(name)
        };
        self.trace.clone().or_else(|| (!is_sound).then(failed))
    }

    /// The arguments that repeat the simulation of the plan's seed alone.
    pub(crate) fn again(&self) -> String {
        let Plan {
            seed,
            scenario,
            seconds,
            bug,
        } = self.plan;
        let bug = bug.map_or_else(String::new, |bug| format!(" --bug {bug}"));
        format!("--seed {seed} --scenario {scenario} --seconds {seconds}{bug}")
    }

    /// The arguments that simulate another seed in a separate process.
    pub(crate) fn words_for(&self, seed: u64) -> Vec<String> {
        let mut other = self.clone();
        other.plan.seed = seed;
        let mut words: Vec<String> = other.again().split(' ').map(str::to_owned).collect();
        words.extend(["--keep".to_owned(), self.keep.display().to_string()]);
        words
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("expected a number, but got `{text}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Arguments, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Arguments::read(&words)
    }

    #[test]
    fn the_words_that_repeat_a_plan_give_the_same_plan() {
        let text = "--seed 7 --scenario snapshots --seconds 3 --bug lost-sync";
        let arguments = read(text).unwrap();
        assert_eq!(arguments.again(), text);
        assert_eq!(read(&arguments.again()).unwrap().again(), text);
    }

    #[test]
    fn a_wrong_call_says_what_was_expected() {
        for (text, expected) in [
            ("--seed", "a value after `--seed`"),
            ("--seed x", "a number"),
            ("--scenario x", "one of mixed, snapshots"),
            ("--fast x", "an option"),
        ] {
            assert!(read(text).unwrap_err().contains(expected), "{text}");
        }
    }
}
