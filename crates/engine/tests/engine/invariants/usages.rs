//! What tasks have used: the sums of a run are those of its steps, and belong to a run (W87).

use super::{read, rows};
use flotilla_engine::json::Json;
use flotilla_engine::rows::{RunRemains, RunUsages, Runs, StepUsages};
use flotilla_engine::store::MemoryStore;

pub(super) fn check(store: &MemoryStore) {
    for (number, sums) in rows::<RunUsages>(store, &()) {
        if read::<Runs>(store, &number).is_none() {
            assert!(
                read::<RunRemains>(store, &number).is_some(),
                "the sums of {number:?} outlive it"
            );
            continue;
        }
        let steps = rows::<StepUsages>(store, &number);
        let mut of_steps = steps.iter().map(|(_, sums)| tokens(sums));
        // What would overflow a sum is left out of it.
        let Some(of_steps) = of_steps.try_fold(0_i64, i64::checked_add) else {
            continue;
        };
        assert_eq!(tokens(&sums.own), of_steps, "the sums of {number:?}");
    }
    for ((number, _), _) in rows::<StepUsages>(store, &()) {
        let of_run = read::<RunUsages>(store, &number);
        assert!(of_run.is_some(), "{number:?} has sums as its steps have");
    }
}

/// The number of tokens, which tasks of the tests report.
fn tokens(sums: &Json) -> i64 {
    let fields = sums.as_str().trim_matches(['{', '}']).split(',');
    let tokens = fields.filter_map(|field| field.strip_prefix("\"tokens\":"));
    tokens
        .map(|sum| sum.parse::<i64>().expect("a number"))
        .sum()
}
