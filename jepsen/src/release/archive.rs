//! Data directories as one file, by the system's `tar`.

use std::path::Path;
use std::process::Command;

/// Files that RocksDB writes only for people.
const LOGS: [&str; 2] = ["--exclude=LOG", "--exclude=LOG.old.*"];

/// Packs these subfolders of a folder, without the owners of the files.
///
/// # Panics
/// When that is not possible.
pub(super) fn pack(folder: &Path, names: &[String], archive: &Path) {
    let mut command = tar("--create", archive, folder);
    command
        .args(["--owner=0", "--group=0", "--numeric-owner", "--sort=name"])
        .args(LOGS)
        .args(names);
    run(command);
}

/// Unpacks an archive into a folder. The files belong to the current user.
///
/// # Panics
/// When that is not possible.
pub(super) fn unpack(archive: &Path, folder: &Path) {
    let mut command = tar("--extract", archive, folder);
    command.arg("--no-same-owner");
    run(command);
}

fn tar(mode: &str, archive: &Path, folder: &Path) -> Command {
    let mut command = Command::new("tar");
    command.args([mode, "--gzip", "--file"]).arg(archive);
    command.arg("--directory").arg(folder);
    command
}

fn run(mut command: Command) {
    let output = command.output().expect("the system has GNU tar");
    assert!(
        output.status.success(),
        "expected {command:?} to succeed, but {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_packed_is_unpacked_without_the_logs_of_the_database() {
        let from = tempfile::tempdir().expect("a temporary folder");
        let data = from.path().join("node-1/log");
        fs::create_dir_all(&data).expect("an empty folder");
        for name in ["000004.log", "LOG", "LOG.old.17"] {
            fs::write(data.join(name), name).expect("an empty folder");
        }
        let archive = from.path().join("packed.tar.gz");
        pack(from.path(), &["node-1".to_owned()], &archive);
        let to = tempfile::tempdir().expect("a temporary folder");
        unpack(&archive, to.path());
        let unpacked = to.path().join("node-1/log");
        let found = fs::read_to_string(unpacked.join("000004.log"));
        assert_eq!(found.ok().as_deref(), Some("000004.log"));
        assert!(!unpacked.join("LOG").exists());
        assert!(!unpacked.join("LOG.old.17").exists());
    }
}
