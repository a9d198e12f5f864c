//! Evaluates the digests that replicas reported for one index (design rule 11).

use std::collections::{BTreeMap, BTreeSet};

/// What the reported digests of one index prove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Too few voters have reported.
    Open,
    /// A majority of voters has `digest`; `minority` reported another.
    Majority {
        digest: u128,
        minority: BTreeSet<u64>,
    },
    /// No digest can reach a majority.
    Split,
}

/// Evaluates the reports of one index; only voters count towards the majority.
pub(crate) fn judge(reports: &BTreeMap<u64, u128>, voters: &BTreeSet<u64>) -> Verdict {
    let quorum = voters.len() / 2 + 1;
    let mut votes: BTreeMap<u128, usize> = BTreeMap::new();
    for (node, digest) in reports {
        if voters.contains(node) {
            *votes.entry(*digest).or_default() += 1;
        }
    }
    let most = votes.iter().max_by_key(|(_, count)| **count);
    let Some((digest, count)) = most.map(|(digest, count)| (*digest, *count)) else {
        return Verdict::Open;
    };
    if count >= quorum {
        let differs = |(node, reported): (&u64, &u128)| (*reported != digest).then_some(*node);
        return Verdict::Majority {
            digest,
            minority: reports.iter().filter_map(differs).collect(),
        };
    }
    let silent = voters
        .iter()
        .filter(|voter| !reports.contains_key(voter))
        .count();
    if count + silent >= quorum {
        Verdict::Open
    } else {
        Verdict::Split
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(reports: &[(u64, u128)], voters: &[u64]) -> Verdict {
        judge(
            &reports.iter().copied().collect(),
            &voters.iter().copied().collect(),
        )
    }

    #[test]
    fn a_majority_names_the_minority_whether_it_votes_or_not() {
        let verdict = judged(&[(1, 7), (2, 7), (3, 8), (9, 8)], &[1, 2, 3]);
        assert_eq!(
            verdict,
            Verdict::Majority {
                digest: 7,
                minority: BTreeSet::from([3, 9])
            }
        );
        let verdict = judged(&[(1, 7), (2, 7)], &[1, 2, 3]);
        assert_eq!(
            verdict,
            Verdict::Majority {
                digest: 7,
                minority: BTreeSet::new()
            }
        );
    }

    #[test]
    fn nothing_is_judged_before_a_majority_has_reported() {
        assert_eq!(judged(&[], &[1, 2, 3]), Verdict::Open);
        assert_eq!(judged(&[(1, 7), (2, 8)], &[1, 2, 3]), Verdict::Open);
        assert_eq!(judged(&[(8, 7), (9, 7)], &[1, 2, 3]), Verdict::Open);
    }

    #[test]
    fn without_a_majority_the_verdict_is_a_split_that_names_no_member() {
        assert_eq!(
            judged(&[(1, 7), (2, 8), (3, 9)], &[1, 2, 3]),
            Verdict::Split
        );
        assert_eq!(judged(&[(1, 7), (2, 8)], &[1, 2]), Verdict::Split);
    }
}
