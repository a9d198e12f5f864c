//! Control groups that limit the memory of nodes.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// How the memory of the nodes is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryLimit {
    /// The nodes know it from a flag; the system does not enforce it.
    Flag,
    /// Each node is in a control group, which it must detect. The system kills processes that exceed the limit.
    ControlGroup,
}

impl MemoryLimit {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "flag",
            Self::ControlGroup => "control group",
        }
    }
}

/// A version of control groups.
#[derive(Clone, Copy, Debug)]
struct Version {
    mount: &'static str,
    /// The file of a group with its limit.
    limit: &'static str,
    /// The file of a group that counts what the system has killed.
    kills: &'static str,
    /// The file of a group that limits swap, or memory and swap together.
    swap: &'static str,
}

const V2: Version = Version {
    mount: "sys/fs/cgroup",
    limit: "memory.max",
    kills: "memory.events",
    swap: "memory.swap.max",
};
const V1: Version = Version {
    mount: "sys/fs/cgroup/memory",
    limit: "memory.limit_in_bytes",
    kills: "memory.oom_control",
    swap: "memory.memsw.limit_in_bytes",
};

impl Version {
    /// The one that limits memory on this machine.
    fn find(root: &Path) -> Option<Self> {
        let controllers = fs::read_to_string(root.join(V2.mount).join("cgroup.controllers"));
        let is_second = |known: String| known.split_whitespace().any(|one| one == "memory");
        if controllers.is_ok_and(is_second) {
            return Some(V2);
        }
        let is_first = root.join(V1.mount).join(V1.limit).exists();
        is_first.then_some(V1)
    }
}

/// A control group with a limit of memory. Dropping it ends the processes in it, and deletes it.
#[derive(Debug)]
pub(super) struct MemoryGroup {
    folder: PathBuf,
    version: Version,
}

impl MemoryGroup {
    /// A group of `bytes` bytes; `None` if the machine does not allow it.
    pub(super) fn make(name: &str, bytes: u64) -> Option<Self> {
        Self::make_in(Path::new("/"), name, bytes)
    }

    /// As [`Self::make`], with the system's files below `root`.
    fn make_in(root: &Path, name: &str, bytes: u64) -> Option<Self> {
        let version = Version::find(root)?;
        let mount = root.join(version.mount);
        // Version 2 only; it may be in effect already.
        let _ = fs::write(mount.join("cgroup.subtree_control"), "+memory");
        let folder = mount.join(name);
        fs::create_dir(&folder).ok()?;
        let group = Self { folder, version };
        fs::write(group.folder.join(version.limit), bytes.to_string()).ok()?;
        group.forbid_swap(bytes, has_swap(root))?;
        Some(group)
    }

    /// Nodes that swap would stay below the limit. `None` if they would.
    fn forbid_swap(&self, bytes: u64, has_swap: bool) -> Option<()> {
        let together = self.version.limit == V1.limit;
        let limit = if together { bytes } else { 0 };
        let written = fs::write(self.folder.join(self.version.swap), limit.to_string());
        (written.is_ok() || !has_swap).then_some(())
    }

    /// What starts a process in it: a program with arguments, which the process's own follow.
    pub(super) fn launcher(&self) -> Vec<OsString> {
        let enter = r#"echo $$ > "$0" && exec "$@""#;
        let mut launcher = ["sh", "-c", enter].map(OsString::from).to_vec();
        launcher.push(self.processes().into());
        launcher
    }

    /// How many of its processes the system has killed because it was full.
    ///
    /// # Panics
    /// If the system does not report it.
    pub(super) fn oom_kills(&self) -> u64 {
        let text = fs::read_to_string(self.folder.join(self.version.kills));
        let kills = text.ok().and_then(|text| parse(&text));
        kills.expect("a control group counts what was killed in it")
    }

    fn processes(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // Such as children of a node that was killed.
        let left = fs::read_to_string(self.processes()).unwrap_or_default();
        for process in left.lines().filter_map(|line| line.parse().ok()) {
            let _ = kill(Pid::from_raw(process), Signal::SIGKILL);
        }
        // A group that is left over is empty and takes no memory.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Parses the row `oom_kill 3`.
fn parse(kills: &str) -> Option<u64> {
    let row = kills
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "));
    row?.trim().parse().ok()
}

/// Whether the machine swaps. The list of its swap areas begins with a heading.
fn has_swap(root: &Path) -> bool {
    let areas = fs::read_to_string(root.join("proc/swaps"));
    areas.is_ok_and(|areas| areas.lines().count() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use tempfile::TempDir;

    /// A system with such a version, or with none.
    fn system(version: Option<Version>) -> TempDir {
        let root = tempfile::tempdir().unwrap();
        let Some(version) = version else { return root };
        let mount = root.path().join(version.mount);
        fs::create_dir_all(&mount).unwrap();
        let (file, text) = match version.limit {
            "memory.max" => ("cgroup.controllers", "cpu memory pids\n"),
            file => (file, "9223372036854771712\n"),
        };
        fs::write(mount.join(file), text).unwrap();
        root
    }

    #[test]
    fn a_group_of_either_version_has_the_limit_and_counts_what_was_killed() {
        let v2 = "low 0\noom 7\noom_kill 3\noom_group_kill 0\n";
        let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        for (version, kills) in [(V2, v2), (V1, v1)] {
            let root = system(Some(version));
            let group = MemoryGroup::make_in(root.path(), "node", 2 << 30).expect("it is allowed");
            let folder = root.path().join(version.mount).join("node");
            let limit = fs::read_to_string(folder.join(version.limit)).unwrap();
            assert_eq!(limit, "2147483648");
            fs::write(folder.join(version.kills), kills).unwrap();
            assert_eq!(group.oom_kills(), 3);
        }
    }

    #[test]
    fn without_control_groups_for_memory_no_group_is_made() {
        assert!(MemoryGroup::make_in(system(None).path(), "node", 1).is_none());
        let other = system(None);
        fs::create_dir_all(other.path().join(V2.mount)).unwrap();
        let controllers = other.path().join(V2.mount).join("cgroup.controllers");
        fs::write(controllers, "cpu hugetlb\n").unwrap();
        assert!(MemoryGroup::make_in(other.path(), "node", 1).is_none());
    }

    #[test]
    fn a_process_enters_the_group_before_it_begins() {
        let root = system(Some(V2));
        let group = MemoryGroup::make_in(root.path(), "node", 1).expect("it is allowed");
        let launcher = group.launcher();
        let mut shown = Command::new(&launcher[0]);
        let shown = shown
            .args(&launcher[1..])
            .args(["sh", "-c", "echo $$"])
            .output();
        let entered = fs::read(group.processes()).unwrap();
        // Dropping the group would kill the process.
        fs::remove_file(group.processes()).unwrap();
        assert!(!entered.is_empty());
        assert_eq!(shown.unwrap().stdout, entered);
    }
}
