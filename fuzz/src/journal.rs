//! The current input, in a file that outlives its execution.
//!
//! A panic can be caught. But a stack overflow or a lack of memory ends the process, and an
//! endless loop never returns: then the file still has the input.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The current input.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    running: Mutex<Option<(Instant, Vec<u8>)>>,
}

impl Journal {
    /// A journal in the file at `path`, whose folder is created.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file: File::create(path)?,
            running: Mutex::new(None),
        })
    }

    /// Writes an input before it is executed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn begin(&self, input: &[u8]) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all_at(input, 0)?;
        self.note(Some((Instant::now(), input.to_owned())));
        Ok(())
    }

    /// Records that the execution has ended.
    pub(crate) fn end(&self) {
        self.note(None);
    }

    /// The input, if its execution has taken longer than that.
    pub(crate) fn stuck(&self, limit: Duration) -> Option<Vec<u8>> {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let (begun, input) = running.as_ref()?;
        (begun.elapsed() > limit).then(|| input.clone())
    }

    /// Removes the file: no input is being executed.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub(crate) fn close(&self) -> io::Result<()> {
        std::fs::remove_file(&self.path)
    }

    fn note(&self, running: Option<(Instant, Vec<u8>)>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_holds_the_input_of_now_and_goes_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("below/cron.input");
        let journal = Journal::create(&path).unwrap();
        journal.begin(b"a longer input").unwrap();
        journal.end();
        assert_eq!(journal.stuck(Duration::ZERO), None);
        journal.begin(b"short").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"short");
        assert_eq!(journal.stuck(Duration::ZERO).unwrap(), b"short");
        assert_eq!(journal.stuck(Duration::MAX), None);
        journal.close().unwrap();
        assert!(!path.exists());
    }
}
