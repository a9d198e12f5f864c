//! How much memory the process may use: the limit of its control groups, or that of the machine.

use std::fs;
use std::path::{Path, PathBuf};

/// Assumed if the system does not say. In bytes.
const UNKNOWN_BYTES: u64 = 2 << 30;
const KIB: u64 = 1 << 10;

/// The memory that this process may use. In bytes.
pub(super) fn of_process() -> u64 {
    in_root(Path::new("/")).unwrap_or(UNKNOWN_BYTES)
}

/// As [`of_process`], with the system's files below `root`.
fn in_root(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo")).ok();
    let machine = machine.as_deref().and_then(total_bytes);
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().filter_map(|line| group_bytes(root, line));
    limits.chain(machine).min()
}

/// Parses the row `MemTotal:   1234 kB`.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let row = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = row.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * KIB)
}

/// The lowest limit of a control group and of those around it; `line` is a row `ID:CONTROLLERS:PATH`.
fn group_bytes(root: &Path, line: &str) -> Option<u64> {
    let mut fields = line.splitn(3, ':');
    let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
    let (mount, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        "memory" => ("sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        _ => return None,
    };
    let mount = root.join(mount);
    let group = mount.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|at| at.starts_with(&mount));
    // A container may see its own group at the mount, although its path is that of the host.
    groups
        .map(PathBuf::from)
        .filter_map(|at| fs::read_to_string(at.join(file)).ok()?.trim().parse().ok())
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn system(files: &[(&str, &str)]) -> TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (path, text) in files {
            let path = root.path().join(path);
            let directory = path.parent().expect("it is below the root");
            fs::create_dir_all(directory).expect("a directory");
            fs::write(path, text).expect("a file");
        }
        root
    }

    const MACHINE: (&str, &str) = ("proc/meminfo", "MemTotal:  8388608 kB\nMemFree: 1 kB\n");

    #[test]
    fn the_lowest_limit_counts() {
        for (files, expected) in [
            (vec![], None),
            (vec![MACHINE], Some(8 << 30)),
            (
                vec![
                    MACHINE,
                    ("proc/self/cgroup", "0::/pods/pod/flo\n"),
                    ("sys/fs/cgroup/pods/pod/flo/memory.max", "max\n"),
                    ("sys/fs/cgroup/pods/pod/memory.max", "2147483648\n"),
                    ("sys/fs/cgroup/pods/memory.max", "4294967296\n"),
                ],
                Some(2 << 30),
            ),
            (
                vec![
                    MACHINE,
                    ("proc/self/cgroup", "7:memory:/docker/abc\n3:cpu:/x\n"),
                    ("sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n"),
                ],
                Some(1 << 30),
            ),
            (
                vec![
                    MACHINE,
                    ("proc/self/cgroup", "7:memory:/\n"),
                    (
                        "sys/fs/cgroup/memory/memory.limit_in_bytes",
                        "9223372036854771712\n",
                    ),
                ],
                Some(8 << 30),
            ),
        ] {
            let root = system(&files);
            assert_eq!(in_root(root.path()), expected, "{files:?}");
        }
    }

    #[test]
    fn this_process_may_use_memory() {
        assert!(of_process() > 64 << 20);
    }
}
