//! Random moves on workflows with plans: breakers, windows and caches want many attempts in a row.

use super::moves::{Intent, on_tasks};
use proptest::prelude::*;

/// Where the workflows with plans lie in the player's list.
const PLANNED: std::ops::Range<u8> = 8..10;

pub(super) fn intents() -> impl Strategy<Value = Intent> {
    prop_oneof![
        8 => (PLANNED, any::<bool>()).prop_map(|(workflow, is_traced)| {
            Intent::Start { workflow, key: None, id: None, is_traced }
        }),
        8 => on_tasks(),
        6 => (any::<u8>(), prop::bool::weighted(0.3)).prop_map(|(token, is_pending)| {
            let outcome = u8::from(is_pending);
            Intent::Complete { token, outcome }
        }),
        5 => (any::<u8>(), prop::option::weighted(0.3, 0..3_u8))
            .prop_map(|(token, code)| Intent::Fail { token, kind: 1, code }),
        3 => any::<u8>().prop_map(|token| Intent::Accept { token }),
        3 => (any::<u8>(), 0..5_u8)
            .prop_map(|(token, outcome)| Intent::Report { token, outcome }),
        8 => any::<u8>().prop_map(|timer| Intent::Fire { timer }),
        1 => (3..10_u8).prop_map(|run| Intent::Cancel { run }),
        1 => (any::<bool>(), prop::option::of(PLANNED))
            .prop_map(|(is_named, workflow)| Intent::Invalidate { is_named, workflow }),
        1 => prop::option::of(0..3_u8).prop_map(|executor| Intent::ResetPlan { executor }),
        1 => (0..8_u8).prop_map(|term| Intent::BeginTerm { term }),
        2 => Just(Intent::SweepRuns),
    ]
}
