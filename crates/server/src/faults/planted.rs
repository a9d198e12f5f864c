//! Planted bugs, with which the chaos tests show that they would find them (`jepsen/README.md`).
//!
//! Only a build with debug assertions reads `FLO_PLANTED_BUG`.

use flotilla_engine::definition::{Definition, StepKind};
use flotilla_engine::{Actor, Body, Command, Reply, reply};
use flotilla_leader::PlantedBug;
use std::sync::LazyLock;

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// A key counts as set when its command is proposed.
    AckBeforeCommit,
    /// A node submits the commands of tokens as those of callers without one.
    LostActor,
    /// A bug of the leader's parts.
    InLeader(PlantedBug),
    /// A command that is sent again is applied again.
    NoDedup,
    /// A stream of events that continues after an event lacks the next one.
    SkippedEvent,
    /// A linearizable read returns what this node has applied.
    StaleRead,
    /// One run more than a concurrency limit says may hold a key.
    WideLimit,
    /// What the target of a step has done is not undone.
    LostCompensation,
    /// A `parallel` step with `compensate: true` undoes its work only at the end of the run, if at all.
    LateUndo,
    /// What iterations write to the state is not merged.
    LostMerge,
}

/// The bug that is planted in the leader's parts, if any.
pub(crate) fn in_leader() -> Option<PlantedBug> {
    match planted()? {
        Bug::InLeader(bug) => Some(bug),
        _ => None,
    }
}

/// Whether this bug is planted in this process.
pub(crate) fn has(bug: Bug) -> bool {
    planted() == Some(bug)
}

/// The bug that is planted in this process.
fn planted() -> Option<Bug> {
    static PLANTED: LazyLock<Option<Bug>> = LazyLock::new(|| {
        let name = std::env::var("FLO_PLANTED_BUG").ok();
        let name = name.filter(|_| cfg!(debug_assertions))?;
        let bug = named(&name);
        tracing::warn!(name, ?bug, "a bug is planted");
        bug
    });
    *PLANTED
}

/// On whose behalf a call is served.
pub(crate) fn served_for(actor: Actor) -> Actor {
    match actor {
        Actor::Token(_) | Actor::Bound(_) if has(Bug::LostActor) => Actor::Anonymous,
        actor => actor,
    }
}

/// The command as it is proposed: with a bug, the engine does not learn something.
pub(crate) fn changed(mut command: Command) -> Command {
    if has(Bug::NoDedup) {
        command.request_id = None;
        match &mut command.body {
            Body::StartRun(start) => start.idempotency_key = None,
            Body::SignalRun(signal) => signal.signal_id = None,
            _ => {}
        }
    }
    if let Body::CreateDefinition(create) = &mut command.body {
        change_definition(&mut create.definition);
    }
    command
}

fn change_definition(definition: &mut Definition) {
    if has(Bug::WideLimit) {
        for limit in &mut definition.concurrency {
            limit.limit += 1;
        }
    }
    for step in &mut definition.steps {
        match &mut step.kind {
            StepKind::Run(run) if has(Bug::LostCompensation) => run.compensation = None,
            StepKind::Parallel(parallel) if has(Bug::LateUndo) => parallel.compensates = false,
            StepKind::ForEach(for_each) if has(Bug::LostMerge) => for_each.merge.clear(),
            _ => {}
        }
    }
}

/// The number of the event after which a stream of events continues.
pub(crate) fn continued_after(seq: u64) -> u64 {
    match has(Bug::SkippedEvent) {
        true => seq.saturating_add(1),
        false => seq,
    }
}

/// The reply that is given before the command is committed, if any.
pub(crate) fn early_reply(command: &Command) -> Option<Reply> {
    let is_early = has(Bug::AckBeforeCommit) && matches!(command.body, Body::SetKey(_));
    is_early.then_some(Reply::KeySet(reply::KeySet { version: 0 }))
}

fn named(name: &str) -> Option<Bug> {
    match name {
        "ack-before-commit" => Some(Bug::AckBeforeCommit),
        "double-lease" => Some(Bug::InLeader(PlantedBug::DoubleLease)),
        "lost-actor" => Some(Bug::LostActor),
        "no-dedup" => Some(Bug::NoDedup),
        "skipped-event" => Some(Bug::SkippedEvent),
        "stale-read" => Some(Bug::StaleRead),
        "lost-timer" => Some(Bug::InLeader(PlantedBug::LostTimer)),
        "wide-limit" => Some(Bug::WideLimit),
        "lost-compensation" => Some(Bug::LostCompensation),
        "late-undo" => Some(Bug::LateUndo),
        "lost-merge" => Some(Bug::LostMerge),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bug_is_planted_unless_it_is_asked_for_by_name() {
        assert_eq!(named("stale-read"), Some(Bug::StaleRead));
        assert_eq!(named("stale"), None);
        assert!(!has(Bug::StaleRead));
    }
}
