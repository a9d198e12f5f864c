//! Targets and locks.

use super::{Row, row};
use crate::samples;
use flotilla_engine::ids::{LockNumber, RunNumber};
use flotilla_engine::rows::{
    ExclusionRecord, Exclusions, LockCount, LockCounts, LockHolders, Locks, OpenLock, OpenLocks,
    RunTargetValue, TargetHolders,
};

pub(super) fn rows() -> Vec<Row> {
    let (run, lock, digest) = (RunNumber(7), LockNumber(4), [7; 32]);
    vec![
        row::<Exclusions>(
            run,
            ExclusionRecord {
                target: Some(RunTargetValue {
                    text: "vm-1".to_owned(),
                    digest,
                }),
                patterns: vec!["^vm-1$".to_owned()],
                is_target_given: true,
                are_locks_given: false,
            },
        ),
        row::<TargetHolders>((samples::namespace(), digest), vec![run]),
        row::<OpenLocks>(
            samples::namespace(),
            vec![OpenLock {
                number: lock,
                digest,
                instructions_count: 5,
            }],
        ),
        row::<Locks>(lock, samples::lock()),
        row::<LockCounts>(
            lock,
            LockCount {
                holders_count: 2,
                next_position: 6,
                first_holder: 3,
            },
        ),
        row::<LockHolders>((lock, 5), run),
    ]
}
