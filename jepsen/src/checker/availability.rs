//! The longest time without a successful operation.

use crate::history::{History, Outcome};

/// The longest time within the clients' work in which no operation succeeded, in microseconds.
#[must_use]
pub fn longest_outage_us(history: &History) -> u64 {
    let end = history.work_until_us;
    let done = history
        .operations
        .iter()
        .filter(|operation| operation.outcome == Outcome::Ok && operation.returned_us <= end);
    let mut moments: Vec<u64> = done.map(|operation| operation.returned_us).collect();
    // The beginning and end of the work count too: a cluster that never serves again is down to the end.
    moments.extend([0, end]);
    moments.sort_unstable();
    let gaps = moments.windows(2).map(|pair| pair[1] - pair[0]);
    gaps.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Operation;

    #[test]
    fn only_success_ends_an_outage() {
        let at = |returned_us, outcome| Operation {
            returned_us,
            ..Operation::sample("starts", outcome)
        };
        let operations = [
            at(10, Outcome::Ok),
            at(20, Outcome::Fail),
            at(30, Outcome::Unknown),
            at(45, Outcome::Ok),
            at(50, Outcome::Ok),
            at(500, Outcome::Ok),
        ];
        let mut history = History {
            operations: operations.to_vec(),
            work_until_us: 50,
            ..History::default()
        };
        assert_eq!(longest_outage_us(&history), 35);
        // No further success until the end.
        history.work_until_us = 100;
        assert_eq!(longest_outage_us(&history), 50);
        assert_eq!(longest_outage_us(&History::default()), 0);
    }
}
