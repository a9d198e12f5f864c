//! What the process uses. What the system does not tell is left out.

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeVal;
use std::fs;

const KIB: u64 = 1 << 10;

/// What the process uses.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) cpu_seconds: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) files_open: Option<usize>,
    pub(super) files_max: Option<u64>,
}

impl Process {
    /// What this process uses now.
    pub(super) fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        let times = usage.map(|usage| seconds(usage.user_time()) + seconds(usage.system_time()));
        let status = fs::read_to_string("/proc/self/status").ok();
        Self {
            cpu_seconds: times,
            resident_bytes: status.as_deref().and_then(resident_bytes),
            files_open: fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
            files_max: getrlimit(Resource::RLIMIT_NOFILE)
                .ok()
                .map(|(soft, _)| soft),
        }
    }
}

fn seconds(time: TimeVal) -> f64 {
    time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6
}

/// The row `VmRSS:   1234 kB` of the process's status.
fn resident_bytes(status: &str) -> Option<u64> {
    let row = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = row.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_used_time_and_memory() {
        let process = Process::now();
        assert!(process.cpu_seconds.is_some_and(|seconds| seconds > 0.0));
        assert!(process.files_max.is_some_and(|files| files > 0));
        if cfg!(target_os = "linux") {
            assert!(process.resident_bytes.is_some_and(|bytes| bytes > 1 << 20));
            assert!(process.files_open.is_some_and(|files| files > 2));
        }
    }

    #[test]
    fn the_resident_memory_stands_in_the_status() {
        let status = "Name:\tflo\nVmHWM:\t  9 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(resident_bytes(status), Some(2 << 20));
        assert_eq!(resident_bytes("Name:\tflo\n"), None);
    }
}
