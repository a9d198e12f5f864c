//! Refusals because of quotas that this node keeps for a short time (X40).
//!
//! A namespace at its limit may send many commands that the engine rejects, and each costs a place in the log. After a rejection,
//! the node therefore checks commands of the same kind itself, for at most a second: first by what it has applied, then by what
//! the cluster has acknowledged. A command that was accepted before is submitted, and gets its reply.

use flotilla_engine::ids::Namespace;
use flotilla_engine::limits::QUOTA_REFUSAL_KEPT_MS;
use flotilla_engine::{Command, CommandKind, QuotaExceeded};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Refusals that are kept at most. Beyond it, further ones are not.
const KEPT_MAX: usize = 4_096;

/// Which kinds of commands of which namespaces were refused lately.
#[derive(Debug, Default)]
pub(crate) struct QuotaRefusals(Mutex<BTreeMap<(Namespace, CommandKind), Instant>>);

impl QuotaRefusals {
    /// Keeps the refusal of a command.
    pub(crate) fn keep(&self, scope: &Namespace, kind: CommandKind, exceeded: &QuotaExceeded) {
        let now = Instant::now();
        let kept_ms = exceeded.retry_after_ms.unwrap_or(QUOTA_REFUSAL_KEPT_MS);
        let kept = Duration::from_millis(kept_ms.min(QUOTA_REFUSAL_KEPT_MS));
        let mut refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.len() >= KEPT_MAX {
            refusals.retain(|_, until| *until > now);
        }
        if refusals.len() < KEPT_MAX {
            refusals.insert((scope.clone(), kind), now + kept);
        }
    }

    /// Whether a command of this kind was refused lately.
    pub(crate) fn apply_to(&self, command: &Command) -> bool {
        let refusals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if refusals.is_empty() {
            return false;
        }
        let Some(namespace) = command.scope.namespace() else {
            return false;
        };
        let until = refusals.get(&(namespace.clone(), command.body.kind()));
        until.is_some_and(|until| *until > Instant::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flotilla_engine::{Body, DeleteNamespace, QuotaDimension, QuotaScope};

    #[test]
    fn a_refusal_is_kept_for_its_kind_and_namespace_only() {
        let refusals = QuotaRefusals::default();
        let namespace = |name| Namespace::new(name).unwrap();
        let command = |name| Body::from(DeleteNamespace {}).into_command(namespace(name));
        let exceeded = |retry_after_ms| QuotaExceeded {
            dimension: QuotaDimension::OpenRuns,
            scope: QuotaScope::Namespace(namespace("a")),
            limit: 1,
            used: 1,
            retry_after_ms,
        };
        let kind = command("a").body.kind();
        assert!(!refusals.apply_to(&command("a")));
        refusals.keep(&namespace("a"), kind, &exceeded(None));
        assert!(refusals.apply_to(&command("a")));
        assert!(!refusals.apply_to(&command("b")));
        refusals.keep(&namespace("b"), kind, &exceeded(Some(0)));
        assert!(!refusals.apply_to(&command("b")));
        refusals.keep(&namespace("c"), CommandKind::StartRun, &exceeded(None));
        assert!(!refusals.apply_to(&command("c")));
    }
}
