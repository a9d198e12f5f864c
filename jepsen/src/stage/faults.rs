//! The folders whose files tell nodes which faults their clocks and disks have.

use flotilla_tests::Scratch;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

/// Makes the folder of a node, and returns the variable that names it.
///
/// # Panics
/// When it cannot be created.
pub(crate) fn variable(scratch: &Scratch, node: u64) -> (String, OsString) {
    let folder = folder(scratch, node);
    fs::create_dir_all(&folder).expect("a folder in the run's own folder");
    ("FLO_FAULTS_DIR".to_owned(), folder.into_os_string())
}

/// Sets a fault of a node.
///
/// # Panics
/// When its file cannot be written.
pub(crate) fn set(scratch: &Scratch, node: u64, name: &str, text: &str) {
    let file = folder(scratch, node).join(name);
    // Renamed into place: a node never reads a partial file.
    let draft = file.with_extension("draft");
    fs::write(&draft, text).expect("a file in the run's own folder");
    fs::rename(&draft, &file).expect("a file in the run's own folder");
}

fn folder(scratch: &Scratch, node: u64) -> PathBuf {
    scratch.path(&format!("faults-{node}"))
}
