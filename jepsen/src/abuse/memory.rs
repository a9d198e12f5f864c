//! The memory of a process, as the kernel counts it.

use std::fs;

/// What `clear_refs` takes to forget the peak.
const FORGET_PEAK: &str = "5";

/// Forgets the process's peak until now. Without the right to do so, the peak is that of its whole life.
pub(super) fn reset_peak(process_id: u32) {
    // The peak is then higher, so that nothing is hidden.
    let _ = fs::write(format!("/proc/{process_id}/clear_refs"), FORGET_PEAK);
}

/// The most memory that the process has used, in bytes; 0 if it has ended.
pub(super) fn peak_bytes(process_id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process_id}/status"));
    parse(&status.unwrap_or_default()).unwrap_or(0)
}

fn parse(status: &str) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_of_a_process_is_read_in_bytes() {
        assert_eq!(parse("Name:\tflo\nVmHWM:\t    2048 kB\n"), Some(2 << 20));
        assert_eq!(parse(""), None);
        assert!(peak_bytes(std::process::id()) > 0);
    }
}
