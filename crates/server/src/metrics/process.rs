//! Resource usage of the process. Values that the system does not report are omitted.

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeVal;
use std::fs;
use std::time::Duration;

const KIB: u64 = 1 << 10;

/// Resource usage of the process.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) cpu: Option<Duration>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) written_bytes: Option<u64>,
    pub(super) files_open: Option<usize>,
    pub(super) files_max: Option<u64>,
}

impl Process {
    /// The current usage of this process.
    pub(super) fn now() -> Self {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        let cpu = usage.map(|usage| duration(usage.user_time()) + duration(usage.system_time()));
        let status = fs::read_to_string("/proc/self/status").ok();
        let io = fs::read_to_string("/proc/self/io").ok();
        Self {
            cpu,
            resident_bytes: status.as_deref().and_then(resident_bytes),
            written_bytes: io.as_deref().and_then(written_bytes),
            files_open: fs::read_dir("/proc/self/fd").ok().map(Iterator::count),
            files_max: getrlimit(Resource::RLIMIT_NOFILE)
                .ok()
                .map(|(soft, _)| soft),
        }
    }
}

/// A used CPU time, never below 0.
fn duration(time: TimeVal) -> Duration {
    let whole = |part: i64| u64::try_from(part).unwrap_or_default();
    Duration::from_secs(whole(time.tv_sec())) + Duration::from_micros(whole(time.tv_usec()))
}

/// Parses the row `VmRSS:   1234 kB` of `/proc/self/status`.
fn resident_bytes(status: &str) -> Option<u64> {
    let row = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = row.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * KIB)
}

/// Parses the row `write_bytes: 1234` of `/proc/self/io`.
fn written_bytes(io: &str) -> Option<u64> {
    let row = io
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes:"))?;
    row.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_has_used_time_and_memory() {
        let process = Process::now();
        assert!(process.cpu.is_some_and(|cpu| !cpu.is_zero()));
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

    #[test]
    fn the_bytes_that_went_to_disks_are_not_those_that_were_taken_back() {
        let io = "wchar: 9\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n";
        assert_eq!(written_bytes(io), Some(4096));
        assert_eq!(written_bytes("wchar: 9\n"), None);
    }
}
