//! Every acknowledged command is in the final state exactly once; an unknown one at most once.

use super::Violation;
use crate::history::Outcome;
use std::collections::{BTreeMap, BTreeSet};

/// An attempt with a key, so that the work is done once however often it is tried.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The key.
    pub key: String,
    /// The outcome of this attempt.
    pub outcome: Outcome,
    /// The id of what was made, if the response names it.
    pub made: Option<String>,
}

/// Compares the attempts with the final state: pairs of a key and the id of what was made for it.
#[must_use]
pub fn exactly_once(attempts: &[Attempt], found: &[(String, String)]) -> Vec<Violation> {
    let mut there: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, made) in found {
        there.entry(key).or_default().push(made);
    }
    let mut by_key: BTreeMap<&str, Vec<&Attempt>> = BTreeMap::new();
    for attempt in attempts {
        by_key.entry(&attempt.key).or_default().push(attempt);
    }
    let mut violations = Vec::new();
    for (key, attempts) in &by_key {
        let made = there.remove(key).unwrap_or_default();
        violations.extend(judge(key, attempts, &made));
    }
    for (key, made) in there {
        violations.push(Violation::new(format!(
            "{key} was never requested, but there is {made:?}"
        )));
    }
    violations
}

fn judge(key: &str, attempts: &[&Attempt], there: &[&str]) -> Vec<Violation> {
    let mut violations = Vec::new();
    let has = |outcome| attempts.iter().any(|attempt| attempt.outcome == outcome);
    if there.len() > 1 {
        violations.push(Violation::new(format!(
            "{key} happened {} times: {there:?}",
            there.len()
        )));
    }
    if there.is_empty() && has(Outcome::Ok) {
        violations.push(Violation::new(format!(
            "{key} was acknowledged, but it is missing"
        )));
    }
    if !there.is_empty() && !has(Outcome::Ok) && !has(Outcome::Unknown) {
        violations.push(Violation::new(format!(
            "{key} certainly failed, but there is {there:?}"
        )));
    }
    let named: BTreeSet<&str> = attempts
        .iter()
        .filter(|attempt| attempt.outcome == Outcome::Ok)
        .filter_map(|attempt| attempt.made.as_deref())
        .collect();
    let strange = named.iter().filter(|made| !there.contains(made));
    for made in strange {
        violations.push(Violation::new(format!(
            "{key} was acknowledged as {made}, but there is {there:?}"
        )));
    }
    violations
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(key: &str, outcome: Outcome, made: &str) -> Attempt {
        Attempt {
            key: key.to_owned(),
            outcome,
            made: Some(made.to_owned()).filter(|made| !made.is_empty()),
        }
    }

    fn found(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |pair: &(&str, &str)| (pair.0.to_owned(), pair.1.to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn an_acknowledged_command_is_there_once_and_an_unknown_one_may_be() {
        let attempts = [
            attempt("a", Outcome::Unknown, ""),
            attempt("a", Outcome::Ok, "r1"),
            attempt("b", Outcome::Unknown, ""),
            attempt("c", Outcome::Unknown, ""),
            attempt("d", Outcome::Fail, ""),
        ];
        let there = found(&[("a", "r1"), ("b", "r2")]);
        assert_eq!(exactly_once(&attempts, &there), []);
    }

    #[test]
    fn a_lost_a_double_a_strange_and_a_failed_one_are_found() {
        let ok = [attempt("a", Outcome::Ok, "r1")];
        assert_eq!(
            exactly_once(&ok, &[]).len(),
            2,
            "lost, and not what was named"
        );
        let double = found(&[("a", "r1"), ("a", "r2")]);
        assert_eq!(exactly_once(&ok, &double).len(), 1);
        let other = found(&[("a", "r2")]);
        assert_eq!(exactly_once(&ok, &other).len(), 1);
        let unasked = found(&[("a", "r1"), ("z", "r9")]);
        assert_eq!(exactly_once(&ok, &unasked).len(), 1);
        let failed = [attempt("a", Outcome::Fail, "")];
        assert_eq!(exactly_once(&failed, &found(&[("a", "r1")])).len(), 1);
    }

    #[test]
    fn an_unknown_one_that_happened_twice_is_found() {
        let attempts = [attempt("a", Outcome::Unknown, "")];
        let double = found(&[("a", "r1"), ("a", "r2")]);
        assert_eq!(exactly_once(&attempts, &double).len(), 1);
    }
}
