//! The time of the log never goes backwards, whatever the machines' clocks do.

use crate::record::Events;
use std::collections::BTreeMap;

pub(super) fn check(events: &Events) -> Vec<String> {
    let mut times = BTreeMap::new();
    for seen in &events.progress {
        if let Some(log_ms) = seen.log_ms {
            times.insert(seen.index, log_ms);
        }
    }
    let pairs = times.iter().zip(times.iter().skip(1));
    let back = pairs.filter(|((_, before_ms), (_, after_ms))| after_ms < before_ms);
    back.map(|((before, before_ms), (after, after_ms))| {
        format!(
            "expected the log's time not to go back, but it is {before_ms} after entry {before} and \
             {after_ms} after entry {after}"
        )
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Progress;

    #[test]
    fn a_time_that_goes_back_between_two_entries_is_found_in_any_order_of_seeing_them() {
        let seen = |index, log_ms| Progress {
            host: 1,
            index,
            digest: 0,
            log_ms: Some(log_ms),
        };
        let mut events = Events::default();
        events.progress = vec![seen(9, 500), seen(3, 100), seen(5, 100)];
        assert!(check(&events).is_empty());
        events.progress.push(seen(7, 501));
        assert_eq!(check(&events).len(), 1);
    }
}
