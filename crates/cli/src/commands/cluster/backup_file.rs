//! Backups as files: one that comes to be, and reading one.

use super::aside::{Stop, Stoppable, aside};
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

/// How much of a file is read at once. In bytes.
const BUFFER_BYTES: usize = 1 << 20;

/// A file that has another name until it is whole, and goes away when it does not become so.
#[derive(Debug)]
pub(super) struct NewFile {
    /// The name that it will have.
    name: PathBuf,
    may_replace: bool,
    file: NamedTempFile,
}

impl NewFile {
    /// Begins a file beside the place where it will be.
    pub(super) fn create(name: PathBuf, may_replace: bool) -> Result<Self, Failure> {
        if name.is_dir() {
            let message = format!("expected a file {}, but it is a folder", name.display());
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

    /// Appends to it.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.file.as_file_mut().write_all(bytes);
        written.map_err(|error| unwritable(&self.name, &error))
    }

    /// What appends to it, too: for a thread, which must not own it. A file goes away with its owner, and a
    /// thread may be left to itself.
    pub(super) fn writer(&self) -> Result<File, Failure> {
        let writer = self.file.as_file().try_clone();
        writer.map_err(|error| unwritable(&self.name, &error))
    }

    /// Makes its content durable, reads it again from the beginning to the end, and says what is in it; unless
    /// a stop is requested.
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

    /// Gives it its name, durably.
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

/// Opens a backup to read it.
pub(super) fn open(name: &Path) -> Result<File, Failure> {
    let refuse = |error| unreadable(Code::FileUnreadable, &name.display().to_string(), &error);
    if name.is_dir() {
        return Err(refuse(io::ErrorKind::IsADirectory.into()));
    }
    File::open(name).map_err(refuse)
}

/// The file behind a buffer: backups are read in small pieces too.
pub(super) fn buffered<R: Read>(file: R) -> BufReader<R> {
    BufReader::with_capacity(BUFFER_BYTES, file)
}

/// Reads and checks a whole backup, and shows how far it is; unless a stop is requested.
pub(super) async fn inspect(
    file: File,
    name: PathBuf,
    stop_requested: impl AsyncFnMut(),
) -> Result<BackupSummary, Failure> {
    let inspecting = move |stop: &Stop| {
        let watch = Watch::start("checking", &file);
        let file = Stoppable {
            input: file,
            stop: stop.clone(),
        };
        let verified = verify(buffered(file), |read| watch.tell(read));
        verified.map_err(|fault| invalid(&name, &fault))
    };
    aside(inspecting, stop_requested).await?
}

/// Shows a person how much of a file was read.
pub(super) struct Watch {
    progress: Progress,
    doing: &'static str,
    size: u64,
}

impl Watch {
    /// Begins; `doing` is what is done with it.
    pub(super) fn start(doing: &'static str, file: &File) -> Self {
        Self {
            progress: Progress::start(doing.to_owned()),
            doing,
            size: file.metadata().map_or(0, |metadata| metadata.len()),
        }
    }

    /// Tells how much was read.
    pub(super) fn tell(&self, read: u64) {
        let (read, size) = (bytes(read), bytes(self.size));
        self.progress
            .say(format!("{}: {read} of {size}", self.doing));
    }
}

/// The refusal of a file that is no backup, or not any more.
pub(super) fn invalid(name: &Path, fault: &BackupFault) -> Failure {
    let message = format!("{}: {fault}", name.display());
    Failure::new(Code::BackupInvalid, message).with_hint(fault.hint())
}

fn exists(name: &Path) -> Failure {
    let message = format!("expected a new file, but {} exists", name.display());
    Failure::new(Code::FileExists, message)
        .with_hint("name another one, or give --force to replace it")
}

fn unwritable(name: &Path, error: &io::Error) -> Failure {
    let message = format!("expected to write {}, but {error}", name.display());
    Failure::new(Code::FileUnwritable, message)
        .with_hint("check its folder, and the room on the disk")
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
