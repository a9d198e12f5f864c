//! A task never has two live holders.

use super::Violation;
use std::collections::BTreeMap;

/// The time for which a worker held a task.
#[derive(Clone, Debug)]
pub struct Hold {
    /// The held task.
    pub subject: String,
    /// The worker.
    pub holder: String,
    /// The beginning.
    pub from_us: u64,
    /// The end: the task was done or given up.
    pub until_us: u64,
}

/// The overlapping holds of one subject.
#[must_use]
pub fn overlapping(holds: &[Hold]) -> Vec<Violation> {
    let mut by_subject: BTreeMap<&str, Vec<&Hold>> = BTreeMap::new();
    for hold in holds {
        by_subject.entry(&hold.subject).or_default().push(hold);
    }
    let mut violations = Vec::new();
    for holds in by_subject.values_mut() {
        holds.sort_by_key(|hold| hold.from_us);
        let pairs = holds.windows(2);
        let overlaps = pairs.filter(|pair| pair[1].from_us < pair[0].until_us);
        violations.extend(overlaps.map(|pair| {
            let (one, other) = (pair[0], pair[1]);
            Violation::new(format!(
                "{} was held by two workers at a time: {one:?} and {other:?}",
                one.subject
            ))
        }));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(subject: &str, holder: &str, from_us: u64, until_us: u64) -> Hold {
        Hold {
            subject: subject.to_owned(),
            holder: holder.to_owned(),
            from_us,
            until_us,
        }
    }

    #[test]
    fn one_holder_after_the_other_is_right() {
        let holds = [
            hold("a", "w1", 0, 5),
            hold("b", "w2", 1, 4),
            hold("a", "w2", 5, 9),
        ];
        assert_eq!(overlapping(&holds), []);
    }

    #[test]
    fn two_holders_at_a_time_are_found() {
        let holds = [hold("a", "w1", 0, 5), hold("a", "w2", 4, 9)];
        assert_eq!(overlapping(&holds).len(), 1);
    }
}
