//! Backup files: writing a new one and reading one.

use super::blocking::{Stop, StoppableReader, run_blocking};
use crate::code::Code;
use crate::failure::Failure;
use crate::file::unreadable;
use crate::progress::Progress;
use crate::views::bytes;
use flotilla_server::backup::{BackupFault, BackupSummary, verify};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The size of the read buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// A file that gets its name only once it is complete, and is deleted otherwise.
#[derive(Debug)]
pub(super) struct NewFile {
    /// The final name.
    name: PathBuf,
    may_replace: bool,
    file: NamedTempFile,
}

impl NewFile {
    /// Creates a temporary file next to the final name.
    pub(super) fn create(name: PathBuf, may_replace: bool) -> Result<Self, Failure> {
        if name.is_dir() {
            let message = format!("expected a file {}, but it is a directory", name.display());
            return Err(Failure::new(Code::FileUnwritable, message));
        }
        if !may_replace && name.exists() {
            return Err(exists(&name));
        }
        let folder = name
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        builder.prefix(".flo-backup-").suffix(".part");
        let file = builder.tempfile_in(folder.unwrap_or(Path::new(".")));
        let file = file.map_err(|error| unwritable(&name, &error))?;
        Ok(Self {
            name,
            may_replace,
            file,
        })
    }

    /// Appends to the file.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.as_file_mut().write_all(bytes);
        written.map_err(|error| unwritable(&self.name, &error))
    }

    /// A second handle that appends to the file, for a thread. The thread must not own the
    /// [`NewFile`]: the file is deleted with its owner, and a thread may be abandoned.
    pub(super) fn writer(&self) -> Result<File, Failure> {
        let writer = self.file.as_file().try_clone();
        writer.map_err(|error| unwritable(&self.name, &error))
    }

    /// Makes the content durable, reads it back completely and returns its summary, unless a stop
    /// is requested.
    pub(super) async fn verified(
        mut self,
        stop_requested: impl AsyncFnMut(),
    ) -> Result<(Self, BackupSummary), Failure> {
        let file = self.file.as_file_mut();
        let rewound = file.sync_all().and_then(|()| file.rewind());
        let reopened = rewound.and_then(|()| file.try_clone());
        let file = reopened.map_err(|error| unwritable(&self.name, &error))?;
        let summary = inspect(file, self.name.clone(), stop_requested).await?;
        Ok((self, summary))
    }

    /// Renames the file to its final name, durably.
    pub(super) fn keep(self) -> Result<(), Failure> {
        let Self {
            name,
            may_replace,
            file,
        } = self;
        let kept = match may_replace {
            true => file.persist(&name),
            false => file.persist_noclobber(&name),
        };
        kept.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(&name),
            _ => unwritable(&name, &error.error),
        })?;
        let folder = name
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let folder = File::open(folder.unwrap_or(Path::new(".")));
        let synced = folder.and_then(|folder| folder.sync_all());
        synced.map_err(|error| unwritable(&name, &error))
    }
}

/// Opens a backup for reading.
pub(super) fn open(name: &Path) -> Result<File, Failure> {
    let refuse = |error| unreadable(Code::FileUnreadable, &name.display().to_string(), &error);
    if name.is_dir() {
        return Err(refuse(io::ErrorKind::IsADirectory.into()));
    }
    File::open(name).map_err(refuse)
}

/// Buffers reads of the file, because backups are also read in small pieces.
pub(super) fn buffered<R: Read>(file: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, file)
}

/// Reads and verifies a whole backup and shows progress, unless a stop is requested.
pub(super) async fn inspect(
    file: File,
    name: PathBuf,
    stop_requested: impl AsyncFnMut(),
) -> Result<BackupSummary, Failure> {
    let inspecting = move |stop: &Stop| {
        let watch = Watch::start("checking", &file);
        let file = StoppableReader {
            input: file,
            stop: stop.clone(),
        };
        let verified = verify(buffered(file), |read| watch.tell(read));
        verified.map_err(|fault| invalid(&name, &fault))
    };
    run_blocking(inspecting, stop_requested).await?
}

/// Shows how much of a file has been read.
pub(super) struct Watch {
    progress: Progress,
    doing: &'static str,
    size: u64,
}

impl Watch {
    /// Begins to show progress; `doing` says what is done with the file.
    pub(super) fn start(doing: &'static str, file: &File) -> Self {
        Self {
            progress: Progress::start(doing.to_owned()),
            doing,
            size: file.metadata().map_or(0, |metadata| metadata.len()),
        }
    }

    /// Updates the number of bytes read.
    pub(super) fn tell(&self, read: u64) {
        let (read, size) = (bytes(read), bytes(self.size));
        self.progress
            .say(format!("{}: {read} of {size}", self.doing));
    }
}

/// The failure for a file that is not a backup or is damaged.
pub(super) fn invalid(name: &Path, fault: &BackupFault) -> Failure {
    let message = format!("{}: {fault}", name.display());
    Failure::new(Code::BackupInvalid, message).with_hint(fault.hint())
}

fn exists(name: &Path) -> Failure {
    let message = format!("expected a new file, but {} exists", name.display());
    Failure::new(Code::FileExists, message)
        .with_hint("choose another name, or pass --force to replace it")
}

fn unwritable(name: &Path, error: &io::Error) -> Failure {
    let message = format!("expected to write {}, but {error}", name.display());
    Failure::new(Code::FileUnwritable, message)
        .with_hint("check its directory and the free disk space")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_is_there_once_it_is_kept_and_leaves_no_trace_before() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join("new");
        let mut file = NewFile::create(name.clone(), false).expect("an empty folder");
        file.write(b"half").expect("room");
        drop(file);
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
        let mut file = NewFile::create(name.clone(), false).expect("an empty folder");
        file.write(b"whole").expect("room");
        file.keep().expect("nothing in its way");
        assert_eq!(fs::read(&name).expect("kept"), b"whole");
    }

    #[test]
    fn a_file_that_exists_is_replaced_only_by_force() {
        let folder = tempfile::tempdir().expect("a folder");
        let name = folder.path().join("old");
        let late = NewFile::create(name.clone(), false).expect("an empty folder");
        fs::write(&name, b"old").expect("room");
        let refused = NewFile::create(name.clone(), false).expect_err("it exists");
        assert_eq!(refused.code(), "file_exists");
        assert_eq!(
            late.keep().expect_err("it exists now").code(),
            "file_exists"
        );
        assert_eq!(fs::read(&name).expect("untouched"), b"old");
        let forced = NewFile::create(name.clone(), true).expect("by force");
        forced.keep().expect("by force");
        assert_eq!(fs::read(&name).expect("replaced"), b"");
    }
}
