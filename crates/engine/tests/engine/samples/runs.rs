//! Commands about runs, with every field set.

use super::kinds::pattern;
use super::{json, key, version, workflow};
use flotilla_engine::definition::Lock;
use flotilla_engine::ids::{RunId, RunNumber};
use flotilla_engine::rows::DefinitionNumber;
use flotilla_engine::{
    Body, DecideLocks, DueTime, LocksVerdict, RetryFrom, RetryRun, StartRun, VersionChoice,
};

pub(super) fn start() -> StartRun {
    StartRun {
        workflow: workflow(),
        version: VersionChoice::Version(version()),
        input: json(),
        input_checked_for: Some(DefinitionNumber(4)),
        idempotency_key: Some(key()),
        run_id: Some(RunId::new("mine").expect("an id")),
        trace: None,
        start_time: Some(DueTime::At { ms: 2_000 }),
        metadata: Some(json()),
        target: Some("vm-1".to_owned()),
        locks: Some(vec![lock()]),
    }
}

pub(super) fn retry() -> Body {
    Body::RetryRun(RetryRun {
        run_id: super::run_id(),
        run: RunNumber(7),
        from: Some(RetryFrom {
            step: super::step(),
            is_forced: true,
        }),
        start: StartRun {
            version: VersionChoice::Definition(DefinitionNumber(4)),
            ..start()
        },
    })
}

pub(super) fn decide_locks() -> Body {
    Body::DecideLocks(DecideLocks {
        run: RunNumber(7),
        verdict: LocksVerdict::Compiled(vec![lock()]),
    })
}

/// A lock.
pub(crate) fn lock() -> Lock {
    Lock {
        pattern: "[a-z]*".to_owned(),
        program: pattern(),
    }
}
