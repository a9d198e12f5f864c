//! Verdicts on what is checked outside the engine.

use crate::invariants::{read, rows};
use crate::script::lock;
use flotilla_engine::ids::RunNumber;
use flotilla_engine::rows::{
    ActivationState, Activations, DefinitionNumber, Exclusions, Runs, SchemaChecks,
};
use flotilla_engine::store::MemoryStore;
use flotilla_engine::{Body, DecideLocks, DecideSchemaCheck, LocksVerdict, SchemaVerdict, view};

/// The verdict on one of the values that are to be checked, or on the locks of a run.
pub(super) fn decide(store: &MemoryStore, pick: u8, is_valid: bool, is_stale: bool) -> Body {
    let checks = rows::<SchemaChecks>(store, &());
    let position = usize::from(pick) % checks.len().max(1);
    let check = checks.get(position).map(|(check, ())| *check);
    let (run, activation) = check.unwrap_or((RunNumber(1), 1));
    if activation == view::LOCKS_CHECK {
        return decide_locks(store, run, is_valid, is_stale);
    }
    let active = read::<Activations>(store, &(run, activation));
    let of_run = read::<Runs>(store, &run);
    let attempt = active.as_ref().map_or(1, |active| active.attempt);
    let definition = match active.map(|active| active.state) {
        Some(ActivationState::ChildInput { definition }) if !is_stale => definition,
        Some(ActivationState::OutputCheck(_)) if !is_stale => {
            of_run.expect("an active run").definition
        }
        None if !is_stale && activation == view::RUN_OUTPUT_CHECK => {
            of_run.expect("a run whose output is checked").definition
        }
        _ => DefinitionNumber(99),
    };
    Body::DecideSchemaCheck(DecideSchemaCheck {
        run,
        activation,
        attempt,
        definition,
        verdict: if is_valid {
            SchemaVerdict::Valid
        } else {
            let detail = "/n".to_owned();
            SchemaVerdict::Invalid { detail }
        },
    })
}

fn decide_locks(store: &MemoryStore, run: RunNumber, is_valid: bool, is_stale: bool) -> Body {
    let own = read::<Exclusions>(store, &run);
    let patterns = own.expect("a run that waits for its locks").patterns;
    let locks = patterns.iter().skip(usize::from(is_stale));
    let verdict = match is_valid {
        true => LocksVerdict::Compiled(locks.map(|pattern| lock(pattern)).collect()),
        false => LocksVerdict::Invalid {
            detail: "it is invalid".to_owned(),
        },
    };
    Body::DecideLocks(DecideLocks { run, verdict })
}
