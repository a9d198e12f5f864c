//! The three builds of `flo`: plain, instrumented, and with a profile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{cargo, child};

/// The package that compiles RocksDB.
const ROCKSDB: &str = "librocksdb-sys";

/// What the other two builds need from the plain build.
pub(super) struct Builder {
    /// Where they keep their output.
    folder: PathBuf,
    /// The folder that holds `librocksdb.a`. Neither build changes how C++ is compiled, so they link this library
    /// instead of compiling it again.
    rocksdb: PathBuf,
    /// The target triple of this machine. Named explicitly, it keeps the flags away from build scripts and
    /// macros.
    target: String,
}

impl Builder {
    /// Builds `flo` for release.
    ///
    /// # Errors
    /// If the build fails.
    pub(super) fn prepare(folder: &Path) -> Result<Self> {
        let release = ["build", "--release", "--locked"];
        let package = ["--package", "flotilla-cli"];
        let messages = ["--message-format", "json-render-diagnostics"];
        let messages = child::stdout(&mut cargo::command(
            &[&release[..], &package, &messages].concat(),
        )?)?;
        let rocksdb = output_folder(&messages, ROCKSDB)
            .context("expected cargo to report where RocksDB was built, but it did not")?;
        let version = child::stdout(Command::new("rustc").arg("-vV"))?;
        Ok(Self {
            folder: folder.to_owned(),
            rocksdb,
            target: host(&version)?.to_owned(),
        })
    }

    /// Builds a `flo` that writes a profile to that folder when it ends.
    ///
    /// # Errors
    /// If the build fails.
    pub(super) fn instrumented(&self, profiles: &Path) -> Result<PathBuf> {
        let flag = format!("-Cprofile-generate={}", profiles.display());
        self.build(&self.folder.join("instrumented"), flag)
    }

    /// Builds `flo` with a merged profile.
    ///
    /// # Errors
    /// If the build fails.
    pub(super) fn optimized(&self, profile: &Path) -> Result<PathBuf> {
        let output = self.folder.join("optimized");
        // Cargo does not notice that the profile has changed.
        if output.exists() {
            fs::remove_dir_all(&output)?;
        }
        self.build(&output, format!("-Cprofile-use={}", profile.display()))
    }

    fn build(&self, output: &Path, flag: String) -> Result<PathBuf> {
        let arguments = [
            "build",
            "--release",
            "--locked",
            "--package",
            "flotilla-cli",
            "--target",
            &self.target,
        ];
        let mut command = cargo::command(&arguments)?;
        command
            .env("CARGO_TARGET_DIR", output)
            // Unlike RUSTFLAGS, it is not split at spaces.
            .env("CARGO_ENCODED_RUSTFLAGS", flag)
            .env("ROCKSDB_LIB_DIR", &self.rocksdb)
            .env("ROCKSDB_STATIC", "1");
        child::run(&mut command)?;
        Ok(output.join(&self.target).join("release").join("flo"))
    }
}

/// Where the build script of a package put its output, in the messages of cargo.
fn output_folder(messages: &str, package: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        (message["reason"] == "build-script-executed").then_some(message)
    });
    let mut found = messages.filter(|message| {
        let id = message["package_id"].as_str();
        id.is_some_and(|id| id.contains(&format!("#{package}@")))
    });
    Some(found.next()?["out_dir"].as_str()?.into())
}

/// The target triple of the machine on which this compiler runs.
fn host(version: &str) -> Result<&str> {
    let mut lines = version.lines();
    let host = lines.find_map(|line| line.strip_prefix("host: "));
    host.context("expected rustc to name its host, but it did not")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_folder_is_that_of_the_package() {
        let messages = r##"
{"reason":"compiler-artifact","package_id":"registry+index#librocksdb-sys@0.19.0"}
{"reason":"build-script-executed","package_id":"registry+index#lz4-sys@1.11.1","out_dir":"/t/lz4-sys-1/out"}
{"reason":"build-script-executed","package_id":"registry+index#librocksdb-sys@0.19.0","out_dir":"/t/sys-2/out"}
{"reason":"build-finished","success":true}
"##;
        let folder = output_folder(messages, ROCKSDB);
        assert_eq!(folder.unwrap(), Path::new("/t/sys-2/out"));
        assert_eq!(output_folder(messages, "rocksdb"), None);
    }

    #[test]
    fn the_host_is_a_line_of_the_version() {
        let version = "rustc 1.95.0\nbinary: rustc\nhost: aarch64-apple-darwin\nrelease: 1.95.0\n";
        assert_eq!(host(version).unwrap(), "aarch64-apple-darwin");
        assert!(host("rustc 1.95.0").is_err());
    }
}
