//! A temporary folder for a cluster, and a report of its logs after a failure.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;

use crate::cluster::OWN;
use crate::interrupt::{Interrupt, Interrupted};

/// How much of each log is shown after a failure.
const TAIL_LINES: usize = 20;

/// The folder for data and logs, and whether to continue.
pub(crate) struct Sandbox {
    folder: TempDir,
    /// Set when the user wants the work to end.
    pub(crate) interrupt: Interrupt,
}

impl Sandbox {
    /// Creates the folder. From now on Ctrl-C is a request to clean up.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn create(name: &str) -> Result<Self> {
        Self::create_in(&env::temp_dir(), name)
    }

    /// The same in a folder that the caller chooses.
    ///
    /// # Errors
    /// As [`Self::create`].
    pub(crate) fn create_in(parent: &Path, name: &str) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix(name).tempdir_in(parent);
        Ok(Self {
            folder: folder.context("expected a temporary folder")?,
            interrupt: Interrupt::catch()?,
        })
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The file for the output of a process.
    pub(crate) fn log(&self, name: &str) -> PathBuf {
        self.folder().join(format!("{name}.log"))
    }

    /// The folders of the logs: this one, and those of clusters in it or in a folder below it.
    fn log_folders(&self) -> Vec<PathBuf> {
        let below = fs::read_dir(self.folder()).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = below.map(|entry| entry.path().join(OWN)).collect();
        below.retain(|folder| folder.is_dir());
        below.sort();
        let here = [self.folder().to_owned(), self.folder().join(OWN)];
        here.into_iter().chain(below).collect()
    }

    /// Does the work, then removes the folder unless it `is_kept`. The work owns its processes as values,
    /// so none is left when it returns, however it returns. If it fails, the ends of all
    /// logs go to stderr.
    ///
    /// # Errors
    /// The error of the work, or else a failure to remove the folder.
    pub(crate) fn run(self, is_kept: bool, work: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let result = work(&self);
        // A Ctrl-C at the terminal ends our children too; the work may have noticed that first.
        let result = self.interrupt.check().and(result);
        if let Err(error) = &result
            && !error.is::<Interrupted>()
        {
            // The failure is printed even if the logs cannot be read.
            for folder in self.log_folders() {
                eprint!("{}", tails(&folder).unwrap_or_default());
            }
        }
        if is_kept {
            println!("\nData and logs are in {}.", self.folder.keep().display());
            return result;
        }
        let removed = self.folder.close();
        result.and(removed.context("expected to remove the temporary folder"))
    }
}

/// The last lines of each log of the folder.
///
/// # Errors
/// If one cannot be read.
pub(crate) fn tails(folder: &Path) -> Result<String> {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    let mut report = String::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        report.push_str(&format!("\n--- the end of the log of {name}\n"));
        let text = fs::read(&path)?;
        for line in tail(&String::from_utf8_lossy(&text)) {
            report.push_str(&format!("{line}\n"));
        }
    }
    Ok(report)
}

fn tail(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].to_vec()
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    fn sandbox() -> Sandbox {
        Sandbox {
            folder: tempfile::tempdir().unwrap(),
            interrupt: Interrupt::never(),
        }
    }

    #[test]
    fn nothing_is_left_of_a_success_or_a_failure() {
        for is_failure in [false, true] {
            let sandbox = sandbox();
            let folder = sandbox.folder().to_owned();
            let result = sandbox.run(false, |sandbox| {
                fs::write(sandbox.log("node1"), "started\n")?;
                if is_failure {
                    bail!("no leader")
                }
                Ok(())
            });
            assert_eq!(result.is_err(), is_failure);
            assert!(!folder.exists());
        }
    }

    #[test]
    fn logs_of_clusters_here_and_below_are_found() {
        let sandbox = sandbox();
        let here = sandbox.folder().to_owned();
        let folders = [here.clone(), here.join(OWN), here.join("open-10").join(OWN)];
        for folder in &folders {
            fs::create_dir_all(folder.join("node1")).unwrap();
        }
        assert_eq!(sandbox.log_folders(), folders);
    }

    #[test]
    fn a_kept_folder_stays() {
        let sandbox = sandbox();
        let folder = sandbox.folder().to_owned();
        sandbox.run(true, |_| Ok(())).unwrap();
        assert!(folder.is_dir());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_failure_shows_the_end_of_every_log_and_nothing_else() {
        let sandbox = sandbox();
        let lines: Vec<String> = (1..=30).map(|line| format!("line {line}.")).collect();
        fs::write(sandbox.log("node1"), lines.join("\n")).unwrap();
        fs::write(sandbox.folder().join("data"), "secret").unwrap();
        let report = tails(sandbox.folder()).unwrap();
        assert!(report.contains("the log of node1\nline 11.\n"), "{report}");
        assert!(report.ends_with("line 30.\n"), "{report}");
        assert!(!report.contains("secret"), "{report}");
    }
}
