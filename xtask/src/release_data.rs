//! `cargo xtask record-release-data`: the data of this release, for tests of later ones.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::subcommand::{Subcommand, UsageError};
use crate::{child, flo, project, requirements};

/// The command `record-release-data`.
pub(crate) const SUBCOMMAND: Subcommand = Subcommand {
    name: "record-release-data",
    summary: "Record the data of this engine version, to test upgrades from it",
    help: HELP,
    run,
};

const HELP: &str = "\
Start three nodes, store data of every kind, stop the nodes, and keep their data as engine-N.tar.gz, with the
acknowledged results beside it as engine-N.json; N is the engine version. Then serve the data once more to check it.
`cargo xtask drill upgrade` makes a later build serve it. Record once for each engine version, before the change that
introduces the next one, and commit both files. Existing files are never replaced.

Usage: cargo xtask record-release-data [DIR]

The default of DIR is jepsen/testdata/releases below the root of the repository.

FLOTILLA_BINARY names the flo that writes the data; without it, flo is built.

Example:
  cargo xtask record-release-data
";

/// Names the `flo` whose data is recorded.
const BINARY: &str = "FLOTILLA_BINARY";

fn run(arguments: &[String]) -> Result<()> {
    let folder = read_arguments(arguments)?;
    let named = env::var_os(BINARY).map(std::path::absolute).transpose();
    let named = named.with_context(|| format!("expected a path in {BINARY}"))?;
    requirements::ensure()?;
    let built = flo::build_beside(&["flotilla-jepsen"])?;
    let mut command = flo::command(&recorder(&built));
    command
        .arg("--record-release-data")
        .arg(folder)
        .env(BINARY, named.unwrap_or(built));
    child::run(&mut command)
}

/// The recording program, which is built beside `flo`.
fn recorder(built: &Path) -> PathBuf {
    built.with_file_name("flotilla-jepsen")
}

/// The folder, relative to the caller's.
fn read_arguments(arguments: &[String]) -> Result<PathBuf> {
    match arguments {
        [] => Ok(project::root().join("jepsen/testdata/releases")),
        [folder] if !folder.starts_with('-') => {
            std::path::absolute(folder).context("expected a current folder")
        }
        [other, ..] => {
            let message = format!("expected one folder at most, but got `{other}`");
            Err(UsageError(message).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<PathBuf> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        read_arguments(&words)
    }

    #[test]
    fn the_folder_is_that_of_the_project_unless_another_is_named() {
        let own = read(&[]).unwrap();
        assert_eq!(own, project::root().join("jepsen/testdata/releases"));
        assert_eq!(read(&["/tmp/kept"]).unwrap(), Path::new("/tmp/kept"));
    }

    #[test]
    fn an_option_or_a_second_folder_is_a_wrong_call() {
        for words in [&["--force"][..], &["one", "two"]] {
            assert!(read(words).unwrap_err().is::<UsageError>());
        }
    }
}
