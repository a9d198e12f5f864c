//! The options of `bench-growth`.

use std::path::PathBuf;

use anyhow::Result;

use super::series::Series;
use crate::arguments::Arguments;
use crate::project;
use crate::subcommand::UsageError;

const SECONDS_DEFAULT: u32 = 10;
const WARM_UP_DEFAULT: u32 = 5;
const OPEN_RUNS_DEFAULT: [u64; 3] = [1_000, 100_000, 1_000_000];

/// The options of `bench-growth`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Options {
    /// The selected series.
    pub(super) series: Vec<Series>,
    /// How long each load is measured, in seconds.
    pub(super) seconds: u32,
    /// How long each load runs before the measurement, in seconds.
    pub(super) warm_up: u32,
    /// The numbers of waiting runs, in rising order.
    pub(super) open_runs: Vec<u64>,
    /// The folder for the page and its figures.
    pub(super) out: PathBuf,
    /// The folder for the data of the clusters.
    pub(super) folder: Option<PathBuf>,
}

impl Options {
    /// # Errors
    /// [`UsageError`] for an unknown option or a wrong value.
    pub(super) fn read(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            series: Series::ALL.to_vec(),
            seconds: SECONDS_DEFAULT,
            warm_up: WARM_UP_DEFAULT,
            open_runs: OPEN_RUNS_DEFAULT.to_vec(),
            out: project::root().join("docs/performance"),
            folder: None,
        };
        let mut arguments = Arguments::new(arguments);
        while let Some(option) = arguments.option() {
            match option {
                "--only" => options.series = arguments.some_of(&Series::ALL, Series::name)?,
                "--seconds" => options.seconds = arguments.positive()?,
                "--warm-up" => options.warm_up = arguments.number()?,
                "--open-runs" => options.open_runs = rising(&mut arguments)?,
                "--out" => options.out = arguments.path()?,
                "--folder" => options.folder = Some(arguments.path()?),
                _ => return Err(arguments.unknown().into()),
            }
        }
        Ok(options)
    }

    /// The command that repeats the measurement of a series, without the output folder.
    pub(super) fn command(&self, series: Series) -> String {
        let Self {
            seconds, warm_up, ..
        } = self;
        let name = series.name();
        let command = format!(
            "cargo xtask bench-growth --only {name} --seconds {seconds} --warm-up {warm_up}"
        );
        if series != Series::OpenRuns {
            return command;
        }
        let sizes: Vec<String> = self.open_runs.iter().map(u64::to_string).collect();
        format!("{command} --open-runs {}", sizes.join(","))
    }
}

/// The first number is the reference for the others, and each one gets a separate cluster.
fn rising(arguments: &mut Arguments<'_>) -> Result<Vec<u64>, UsageError> {
    let sizes: Vec<u64> = arguments.numbers()?;
    if sizes.is_sorted_by(|before, after| before < after) {
        return Ok(sizes);
    }
    Err(arguments.unexpected("numbers in rising order", format_args!("{sizes:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::read(&words)
    }

    #[test]
    fn everything_is_measured_by_default() {
        let options = read("").unwrap();
        assert_eq!(options.series, Series::ALL);
        assert_eq!((options.seconds, options.warm_up), (10, 5));
        assert_eq!(options.out, project::root().join("docs/performance"));
    }

    #[test]
    fn a_command_measures_one_series_again() {
        let options =
            read("--only idle,open-runs --open-runs 0,50 --seconds 3 --out /tmp/x").unwrap();
        assert_eq!(options.series, [Series::OpenRuns, Series::Idle]);
        assert_eq!(
            options
                .series
                .iter()
                .map(|it| options.command(*it))
                .collect::<Vec<_>>(),
            [
                "cargo xtask bench-growth --only open-runs --seconds 3 --warm-up 5 --open-runs 0,50",
                "cargo xtask bench-growth --only idle --seconds 3 --warm-up 5",
            ]
        );
    }

    #[test]
    fn a_wrong_call_is_refused() {
        for line in [
            "--only everything",
            "--seconds 0",
            "--open-runs 100,10",
            "--open-runs 10,10",
            "--open-runs many",
            "clients",
        ] {
            assert!(read(line).unwrap_err().is::<UsageError>(), "{line}");
        }
    }
}
