//! Files that are written completely or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes a new file with these permission bits, durably; its directory is created if it does not exist. A crash never leaves a part
/// of the file.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if the file exists, which is left unchanged; another I/O error.
pub(super) fn create(file: &Path, mode: u32, contents: &[u8]) -> io::Result<()> {
    let folder = match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    fs::create_dir_all(folder)?;
    let mut draft = NamedTempFile::new_in(folder)?;
    // The umask of the process does not limit these.
    draft
        .as_file()
        .set_permissions(Permissions::from_mode(mode))?;
    draft.write_all(contents)?;
    draft.as_file().sync_all()?;
    draft.persist_noclobber(file)?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_exists_is_left_unchanged() {
        let folder = tempfile::tempdir().expect("a directory");
        let file = folder.path().join("new/file");
        create(&file, 0o640, b"first").expect("room");
        let mode = fs::metadata(&file).expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        let again = create(&file, 0o600, b"second").expect_err("it exists");
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&file).expect("it exists"), b"first");
        let parent = file.parent().expect("a directory");
        assert_eq!(fs::read_dir(parent).expect("it exists").count(), 1);
    }
}
