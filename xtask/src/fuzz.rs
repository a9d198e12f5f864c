//! `cargo xtask fuzz`: fuzzes the code that reads untrusted input.

mod coverage;
mod mutations;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::project;
use crate::subcommand::{Subcommand, UsageError};

/// The command `fuzz`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "fuzz",
    summary: "Fuzz the code that reads untrusted input",
    help: HELP,
    run,
};

const SECONDS_DEFAULT: u64 = 60;

const HELP: &str = "\
Fuzz the code that reads untrusted input: the given targets of `fuzz`, or all of them, one after another.

With a nightly toolchain and cargo-fuzz, coverage guides the search (libFuzzer). Without them, it mutates the
corpora on stable Rust, and prints how to install them. Failing inputs are kept in fuzz/artifacts.

Usage: cargo xtask fuzz [TARGET...] [--seconds N] [--stable]
       cargo xtask fuzz TARGET --input FILE

Options:
  --seconds N   How long to fuzz each target [default: 60]
  --stable      Mutate the corpora on stable Rust, even if cargo-fuzz is installed
  --input FILE  Run only this input, to reproduce a failure

Example:
  cargo xtask fuzz entry record --seconds 600
";

/// The caller's options.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    /// Fuzz targets, each for this long.
    Explore {
        targets: Vec<String>,
        time: Duration,
        is_stable: bool,
    },
    /// Run one input.
    Repeat { target: String, input: PathBuf },
}

fn run(arguments: &[String]) -> Result<()> {
    match read_arguments(arguments, &targets()?)? {
        Call::Repeat { target, input } => mutations::repeat(&target, &input),
        Call::Explore {
            targets,
            time,
            is_stable,
        } => {
            let missing = coverage::missing();
            if is_stable || !missing.is_empty() {
                tell_missing(&missing);
                return mutations::explore(&targets, time);
            }
            coverage::explore(&targets, time)
        }
    }
}

/// The targets: each has a corpus with its name.
fn targets() -> Result<Vec<String>> {
    let folder = corpora();
    let entries =
        fs::read_dir(&folder).with_context(|| format!("expected {}", folder.display()))?;
    let mut targets = Vec::new();
    for entry in entries {
        targets.push(entry?.file_name().to_string_lossy().into_owned());
    }
    targets.sort();
    Ok(targets)
}

fn corpora() -> PathBuf {
    project::root().join("fuzz").join("corpus")
}

fn read_arguments(arguments: &[String], known: &[String]) -> Result<Call> {
    let wrong = |message: String| Err(UsageError(message).into());
    let mut targets = Vec::new();
    let mut seconds = SECONDS_DEFAULT;
    let (mut is_stable, mut input) = (false, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--stable" => is_stable = true,
            "--seconds" => match words.next().map(|count| count.parse()) {
                Some(Ok(count)) if count > 0 => seconds = count,
                _ => return wrong("expected a number of seconds after --seconds".to_owned()),
            },
            "--input" => match words.next() {
                Some(file) => input = Some(PathBuf::from(file)),
                None => return wrong("expected a file after --input".to_owned()),
            },
            name if known.iter().any(|target| target == name) => targets.push(name.to_owned()),
            other => {
                let known = known.join(", ");
                return wrong(format!("expected a target ({known}), but got `{other}`"));
            }
        }
    }
    match (input, targets.as_slice()) {
        (Some(input), [target]) => Ok(Call::Repeat {
            target: target.clone(),
            input,
        }),
        (Some(_), _) => wrong("expected one target with --input".to_owned()),
        (None, []) => Ok(Call::Explore {
            targets: known.to_owned(),
            time: Duration::from_secs(seconds),
            is_stable,
        }),
        (None, _) => Ok(Call::Explore {
            targets,
            time: Duration::from_secs(seconds),
            is_stable,
        }),
    }
}

fn tell_missing(missing: &[coverage::Missing]) {
    if missing.is_empty() {
        return;
    }
    println!("On stable Rust, without coverage. For coverage-guided fuzzing, run:\n");
    for tool in missing {
        println!("    {}", tool.line);
    }
    println!();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Call> {
        let owned = |words: &[&str]| {
            words
                .iter()
                .map(|&word| word.to_owned())
                .collect::<Vec<_>>()
        };
        read_arguments(&owned(words), &owned(&["cron", "entry"]))
    }

    fn explore(targets: &[&str], seconds: u64, is_stable: bool) -> Call {
        Call::Explore {
            targets: targets.iter().map(|&target| target.to_owned()).collect(),
            time: Duration::from_secs(seconds),
            is_stable,
        }
    }

    #[test]
    fn every_target_is_tried_for_a_minute_by_default() {
        assert_eq!(read(&[]).unwrap(), explore(&["cron", "entry"], 60, false));
        assert_eq!(
            read(&["--seconds", "5", "entry", "--stable"]).unwrap(),
            explore(&["entry"], 5, true)
        );
    }

    #[test]
    fn an_input_is_for_one_target() {
        let expected = Call::Repeat {
            target: "cron".to_owned(),
            input: "a".into(),
        };
        assert_eq!(read(&["cron", "--input", "a"]).unwrap(), expected);
    }

    #[test]
    fn a_wrong_call_is_refused() {
        for words in [
            &["corn"][..],
            &["--seconds"],
            &["--seconds", "0"],
            &["--seconds", "soon"],
            &["cron", "--input"],
            &["--input", "a"],
            &["cron", "entry", "--input", "a"],
            &["--fast"],
        ] {
            assert!(read(words).unwrap_err().is::<UsageError>(), "{words:?}");
        }
    }

    #[test]
    fn the_targets_are_those_with_a_corpus() {
        assert!(
            targets()
                .unwrap()
                .iter()
                .any(|target| target == "definition")
        );
    }
}
