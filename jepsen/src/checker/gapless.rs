//! Sequences without gaps and duplicates.

use super::Violation;

/// Expects the numbers 1, 2, 3 and so on.
#[must_use]
pub fn numbered(what: &str, numbers: &[u64]) -> Vec<Violation> {
    let wrong = numbers.iter().zip(1..).find(|(number, at)| *number != at);
    let told = wrong.map(|(number, expected)| {
        Violation::new(format!(
            "{what}: expected number {expected}, but got {number} in {numbers:?}"
        ))
    });
    told.into_iter().collect()
}

/// Expects times in steps of `interval_ms`, in any order.
#[must_use]
pub fn evenly_spaced(what: &str, times_ms: &[u64], interval_ms: u64) -> Vec<Violation> {
    let mut times_ms = times_ms.to_vec();
    times_ms.sort_unstable();
    let pairs = times_ms.windows(2);
    let wrong = pairs.filter(|pair| pair[1] - pair[0] != interval_ms);
    wrong
        .map(|pair| {
            Violation::new(format!(
                "{what}: expected steps of {interval_ms} ms, but {} follows {}",
                pair[1], pair[0]
            ))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_and_a_repeat_are_found() {
        assert_eq!(numbered("watch", &[1, 2, 3]), []);
        assert_eq!(numbered("watch", &[1, 3]).len(), 1);
        assert_eq!(numbered("watch", &[1, 1, 2]).len(), 1);
        assert_eq!(numbered("watch", &[2, 3]).len(), 1);
    }

    #[test]
    fn a_firing_left_out_and_a_firing_too_many_are_found() {
        assert_eq!(evenly_spaced("schedule", &[300, 100, 200], 100), []);
        assert_eq!(evenly_spaced("schedule", &[100, 300], 100).len(), 1);
        assert_eq!(evenly_spaced("schedule", &[100, 200, 200], 100).len(), 1);
    }
}
