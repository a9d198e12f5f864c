//! Lets clones of the project share one target folder without one reading what another built.
//!
//! Cargo names what it builds of a workspace by paths within the workspace, and takes it as fresh unless a source file
//! is newer. So in a clone whose files are older, it would use what another clone built from other files.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};

/// The file in the target folder that names the clone that built into it last.
const LAST_CLONE: &str = "last-clone";
/// Folders that hold no sources.
const NOT_SOURCES: [&str; 2] = [".git", "target"];

/// Makes every source file of the clone newer than what another clone built, if another clone built last.
///
/// # Errors
/// If a file cannot be read or written.
pub(crate) fn claim(target_dir: &Path, clone: &Path) -> Result<()> {
    let last_clone = target_dir.join(LAST_CLONE);
    let name = clone.as_os_str().as_encoded_bytes();
    if fs::read(&last_clone).is_ok_and(|last| last == name) {
        return Ok(());
    }
    touch(clone, SystemTime::now())
        .with_context(|| format!("expected to touch the files of {}", clone.display()))?;
    fs::create_dir_all(target_dir)
        .and_then(|()| fs::write(&last_clone, name))
        .with_context(|| format!("expected to write {}", last_clone.display()))
}

fn touch(folder: &Path, now: SystemTime) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_source = !NOT_SOURCES.iter().any(|name| entry.file_name() == *name);
        if kind.is_dir() && is_source {
            touch(&entry.path(), now)?;
        } else if kind.is_file() {
            File::open(entry.path())?.set_modified(now)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_old(file: &Path) -> bool {
        fs::metadata(file).unwrap().modified().unwrap() == SystemTime::UNIX_EPOCH
    }

    fn make_old(file: &Path) {
        let file = File::open(file).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    }

    #[test]
    fn the_files_of_a_clone_become_new_when_another_clone_built_last() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("cache/target");
        let clones = ["one", "two"].map(|name| folder.path().join(name));
        for clone in &clones {
            fs::create_dir_all(clone.join("proto")).unwrap();
            fs::create_dir_all(clone.join("target")).unwrap();
            for file in ["proto/a.proto", "target/built"] {
                fs::write(clone.join(file), "").unwrap();
                make_old(&clone.join(file));
            }
        }
        let [one, two] = clones.map(|clone| (clone.join("proto/a.proto"), clone));

        claim(&target, &one.1).unwrap();
        assert!(!is_old(&one.0));
        make_old(&one.0);
        claim(&target, &one.1).unwrap();
        assert!(is_old(&one.0));

        claim(&target, &two.1).unwrap();
        assert!(!is_old(&two.0));
        claim(&target, &one.1).unwrap();
        assert!(!is_old(&one.0));
        assert!(is_old(&one.1.join("target/built")));
    }
}
