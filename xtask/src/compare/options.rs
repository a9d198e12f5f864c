//! The options of `bench-compare`.

use std::path::PathBuf;

use anyhow::Result;

use crate::arguments::Arguments;

const ROUNDS_DEFAULT: u32 = 3;
const SECONDS_DEFAULT: u32 = 10;
const WARM_UP_DEFAULT: u32 = 5;

/// A comparison that can be selected with `--only`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contest {
    /// How long the disk takes to make an append durable.
    Floor,
    /// Starts of runs against etcd's puts.
    Etcd,
    /// Runs of three steps against Restate's, with workers over the Rust SDK.
    Restate,
    /// The same with a worker in Python.
    Python,
}

impl Contest {
    /// All contests, in the order in which they run.
    pub(super) const ALL: [Self; 4] = [Self::Floor, Self::Etcd, Self::Restate, Self::Python];

    /// Its name on the command line and in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Etcd => "etcd",
            Self::Restate => "restate",
            Self::Python => "python",
        }
    }
}

/// The options of `bench-compare`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// The selected contests; the floor is always measured.
    pub(super) contests: Vec<Contest>,
    /// How often each workload is measured.
    pub(super) rounds: u32,
    /// How long each load is measured, in seconds.
    pub(super) seconds: u32,
    /// How long each load runs before the measurement, in seconds.
    pub(super) warm_up: u32,
    /// Whether Restate is also measured with its default number of partitions.
    pub(super) with_defaults: bool,
    /// The file for the report.
    pub(super) json: Option<PathBuf>,
    /// The folder for the data of all systems.
    pub(super) folder: Option<PathBuf>,
}

impl Options {
    /// # Errors
    /// [`UsageError`] for an unknown option or a wrong value.
    pub(super) fn read(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            contests: Contest::ALL.to_vec(),
            rounds: ROUNDS_DEFAULT,
            seconds: SECONDS_DEFAULT,
            warm_up: WARM_UP_DEFAULT,
            with_defaults: false,
            json: None,
            folder: None,
        };
        let mut arguments = Arguments::new(arguments);
        while let Some(option) = arguments.option() {
            match option {
                "--only" => options.contests = arguments.some_of(&Contest::ALL, Contest::name)?,
                "--rounds" => options.rounds = arguments.positive()?,
                "--seconds" => options.seconds = arguments.positive()?,
                "--warm-up" => options.warm_up = arguments.number()?,
                "--defaults" => options.with_defaults = true,
                "--json" => options.json = Some(arguments.path()?),
                "--folder" => options.folder = Some(arguments.path()?),
                _ => return Err(arguments.unknown().into()),
            }
        }
        Ok(options)
    }

    /// Whether a contest was selected.
    pub(super) fn includes(&self, contest: Contest) -> bool {
        self.contests.contains(&contest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subcommand::UsageError;

    fn read(words: &[&str]) -> Result<Options> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Options::read(&words)
    }

    #[test]
    fn everything_is_compared_in_three_rounds_by_default() {
        let options = read(&[]).unwrap();
        assert_eq!(options.contests, Contest::ALL);
        let Options {
            rounds, seconds, ..
        } = options;
        assert_eq!((rounds, seconds), (3, 10));
        assert_eq!((options.json, options.with_defaults), (None, false));
    }

    #[test]
    fn some_are_picked_and_held_in_their_order() {
        let options = read(&["--only", "python,etcd", "--rounds", "1"]).unwrap();
        assert_eq!(options.contests, [Contest::Etcd, Contest::Python]);
        assert!(!options.includes(Contest::Restate));
        assert_eq!(options.rounds, 1);
    }

    #[test]
    fn paths_are_the_callers() {
        let options = read(&["--json", "out.json", "--folder", "/data"]).unwrap();
        let expected = std::env::current_dir().unwrap().join("out.json");
        assert_eq!(options.json, Some(expected));
        assert_eq!(options.folder, Some(PathBuf::from("/data")));
    }

    #[test]
    fn a_wrong_call_is_refused() {
        for words in [
            &["--only", "temporal"][..],
            &["--only"],
            &["--rounds", "0"],
            &["--rounds", "many"],
            &["--seconds", "-1"],
            &["etcd"],
        ] {
            assert!(read(words).unwrap_err().is::<UsageError>(), "{words:?}");
        }
    }
}
