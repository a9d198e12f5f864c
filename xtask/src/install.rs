//! Installs what the build needs, or prints how to.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::child;
use crate::requirements::is_program;

/// Debian's packages: clang, the linker and the C++ library with g++, make, and libclang together with its headers.
pub(crate) const DEBIAN_PACKAGES: [&str; 4] = ["clang", "g++", "make", "libclang-dev"];

/// The command to run, by the machine's package manager.
const LINES: [(&str, &str); 6] = [
    (
        "apt-get",
        "sudo apt-get install -y clang g++ make libclang-dev",
    ),
    ("dnf", "sudo dnf install -y clang gcc-c++ make clang-devel"),
    ("pacman", "sudo pacman -S --needed gcc make clang"),
    (
        "zypper",
        "sudo zypper install -y clang gcc-c++ make clang-devel",
    ),
    ("apk", "sudo apk add clang g++ make clang-dev"),
    ("xcode-select", "xcode-select --install"),
];

/// Whether we may install packages without asking: as root on Debian or a derivative.
pub(crate) fn is_unattended_possible() -> bool {
    Path::new("/etc/debian_version").exists() && is_program("apt-get") && is_root()
}

/// Installs these packages with apt.
///
/// # Errors
/// If apt fails twice, the second time with fresh package lists.
pub(crate) fn run(packages: &[&str]) -> Result<()> {
    if install_packages(packages).is_ok() {
        return Ok(());
    }
    // A new machine has no package lists, or outdated ones.
    apt_get(&["update"])?;
    install_packages(packages)
}

/// The command that installs everything on this machine, if its package manager is known.
pub(crate) fn line() -> Option<&'static str> {
    choose_line(is_program)
}

fn choose_line(is_program: impl Fn(&str) -> bool) -> Option<&'static str> {
    let mut known = LINES.iter();
    let found = known.find(|(manager, _)| is_program(manager));
    found.map(|(_, line)| *line)
}

fn install_packages(packages: &[&str]) -> Result<()> {
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(packages);
    apt_get(&arguments)
}

fn apt_get(arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("apt-get");
    command
        .args(arguments)
        .env("DEBIAN_FRONTEND", "noninteractive");
    child::run(&mut command)
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_package_manager_has_its_line() {
        for (manager, line) in LINES {
            assert_eq!(choose_line(|name| name == manager), Some(line));
            assert!(line.contains(manager), "{line}");
        }
    }

    #[test]
    fn an_unknown_machine_gets_no_line() {
        assert_eq!(choose_line(|_| false), None);
    }

    #[test]
    fn the_line_for_debian_names_the_packages_that_root_gets() {
        let line = choose_line(|name| name == "apt-get").unwrap();
        for package in DEBIAN_PACKAGES {
            assert!(line.contains(package), "{line}");
        }
    }
}
