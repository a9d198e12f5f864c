//! Programs from Debian packages, without installing them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow};

use crate::child;

/// Unpacks the package into the folder; installs nothing.
///
/// # Errors
/// If apt-get or dpkg is missing, or the package cannot be fetched.
pub(crate) fn unpack(package: &str, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut download = Command::new("apt-get");
    download.args(["download", package]).current_dir(folder);
    child::run(&mut download)?;
    let is_package = |path: &PathBuf| path.extension() == Some(OsStr::new("deb"));
    let mut found = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let package = found.find(is_package);
    let package =
        package.ok_or_else(|| anyhow!("expected a package, but apt-get did not download one"))?;
    child::run(Command::new("dpkg").arg("-x").arg(package).arg(folder))
}
