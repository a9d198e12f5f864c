//! libFuzzer with cargo-fuzz: guided by coverage, on nightly Rust.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::requirements::is_program;
use crate::{child, project};

/// A tool that this machine lacks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// The command that installs it.
    pub(super) line: &'static str,
}

const NIGHTLY: Missing = Missing {
    line: "rustup toolchain install nightly --profile minimal",
};
const CARGO_FUZZ: Missing = Missing {
    line: "cargo install cargo-fuzz --locked",
};

/// How long one input may take. In seconds.
const TIMEOUT_SECONDS: u32 = 20;
/// How much memory the process may use, Wasmtime's code included. In MiB.
const MEMORY_MIB_MAX: u32 = 2_048;

/// The tools that this machine lacks.
pub(super) fn missing() -> Vec<Missing> {
    let mut missing = Vec::new();
    if !has_nightly() {
        missing.push(NIGHTLY);
    }
    if !is_program("cargo-fuzz") {
        missing.push(CARGO_FUZZ);
    }
    missing
}

fn has_nightly() -> bool {
    let listed = Command::new("rustup").args(["toolchain", "list"]).output();
    listed.is_ok_and(|listed| lists_nightly(&String::from_utf8_lossy(&listed.stdout)))
}

fn lists_nightly(toolchains: &str) -> bool {
    toolchains.lines().any(|line| line.starts_with("nightly"))
}

/// Fuzzes each of the targets for that long. New inputs are kept beside the build output, where the next
/// call resumes from them; failing inputs in fuzz/artifacts.
///
/// # Errors
/// [`child::ChildFailed`] if a fault was found, which libFuzzer has printed with the input's path.
pub(super) fn explore(targets: &[String], time: Duration) -> Result<()> {
    let target_dir = project::target_dir()?.join("libfuzzer");
    let artifacts = project::root().join("fuzz").join("artifacts");
    fs::create_dir_all(&artifacts).with_context(|| format!("expected {}", artifacts.display()))?;
    for target in targets {
        println!("\n==> {target}");
        let found = target_dir.join("corpus").join(target);
        fs::create_dir_all(&found).with_context(|| format!("expected {}", found.display()))?;
        let mut fuzzer = cargo_fuzz(&target_dir);
        fuzzer
            .arg(target)
            .arg(&found)
            .arg(super::corpora().join(target))
            .arg("--");
        fuzzer.args(options(target, time, &artifacts));
        child::run(&mut fuzzer)?;
    }
    Ok(())
}

/// A call of cargo-fuzz, without the target and its arguments.
fn cargo_fuzz(target_dir: &Path) -> Command {
    let mut command = Command::new("rustup");
    // Without the address sanitizer: our code has no unsafe code to check, and the sanitizer halves the
    // number of executions.
    command
        .args([
            "run",
            "nightly",
            "cargo",
            "fuzz",
            "run",
            "--sanitizer",
            "none",
        ])
        .arg("--fuzz-dir")
        .arg(project::root().join("fuzz").join("libfuzzer"))
        .arg("--target-dir")
        .arg(target_dir)
        .current_dir(project::root());
    // Set by the stable toolchain that runs us.
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command
}

/// The arguments of libFuzzer itself.
fn options(target: &str, time: Duration, artifacts: &Path) -> Vec<String> {
    vec![
        format!("-max_total_time={}", time.as_secs()),
        format!("-timeout={TIMEOUT_SECONDS}"),
        format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
        format!("-artifact_prefix={}/{target}-", artifacts.display()),
        "-print_final_stats=1".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nightly_toolchain_is_found_in_the_list() {
        assert!(lists_nightly("stable-x86_64 (default)\nnightly-x86_64\n"));
        assert!(!lists_nightly("stable-x86_64 (default)\n1.95.0-x86_64\n"));
    }

    #[test]
    fn artifacts_are_named_after_their_target() {
        let options = options("cron", Duration::from_secs(5), Path::new("/a"));
        assert!(
            options.contains(&"-artifact_prefix=/a/cron-".to_owned()),
            "{options:?}"
        );
        assert!(
            options.contains(&"-max_total_time=5".to_owned()),
            "{options:?}"
        );
    }
}
