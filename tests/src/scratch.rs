//! The folder of a test.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use tempfile::TempDir;

/// How much of each log is printed when the test panics.
const LINES_PRINTED: usize = 60;

/// A temporary folder: data and logs of processes. When the test panics, the logs' last lines are
/// printed and the folder is kept.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
}

impl Scratch {
    /// A new folder.
    ///
    /// # Panics
    /// When it cannot be created.
    #[must_use]
    pub fn new() -> Self {
        let folder = TempDir::with_prefix("flotilla-").expect("a temporary folder");
        fs::create_dir(folder.path().join("logs")).expect("an empty folder has room");
        Self { folder }
    }

    /// The path of a file with this name.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The log of the process with this name.
    #[must_use]
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }

    /// Writes a file and returns its path, as an argument for a command.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, content).expect("a file in the test's own folder");
        path.to_str()
            .expect("a temporary folder's name is UTF-8")
            .to_owned()
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if !thread::panicking() {
            return;
        }
        self.folder.disable_cleanup(true);
        eprintln!(
            "the test's folder is kept: {}",
            self.folder.path().display()
        );
        let logs = fs::read_dir(self.folder.path().join("logs"));
        let mut logs: Vec<PathBuf> = logs
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        logs.sort();
        for log in logs {
            print_end(&log);
        }
    }
}

fn print_end(log: &Path) {
    let content = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&content);
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(LINES_PRINTED);
    eprintln!("--- {}, after {skipped} lines", log.display());
    for line in &lines[skipped..] {
        eprintln!("{line}");
    }
}
