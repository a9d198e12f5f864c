//! How a step joins its branches, in a few words.

use flotilla_engine::definition::{Join, Merge, MergeRule};
use flotilla_engine::ids::StateKey;

/// `any`, `first` or a number of branches; all of them by default.
pub(super) fn join(text: Option<&str>) -> Join {
    match text {
        None => Join::All,
        Some("any") => Join::Any,
        Some("first") => Join::First,
        Some(count) => Join::Count(count.parse().expect("a number of branches")),
    }
}

/// `KEY=WORD;KEY=WORD`
pub(super) fn merge(text: Option<String>) -> Vec<MergeRule> {
    let text = text.unwrap_or_default();
    let rules = text.split(';').filter_map(|rule| rule.split_once('='));
    let rule = |(key, word): (&str, &str)| MergeRule {
        key: StateKey::new(key).expect("a key"),
        merge: *Merge::ALL
            .iter()
            .find(|merge| merge.word() == word)
            .expect("a word for a merge"),
    };
    rules.map(rule).collect()
}
