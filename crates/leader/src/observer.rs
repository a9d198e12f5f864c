//! What the leader's parts report about their work.

use flotilla_engine::{CommandKind, CommandScope};
use std::time::Duration;

/// Receives what the leader's parts do, for metrics and logs. They wait for each call, so it must be quick.
pub trait Observer: Send + Sync + 'static {
    /// The timers were read: the earliest is due at `due_ms`, in milliseconds. `None` if there is no timer, or if this
    /// node no longer leads.
    fn timers_read(&self, due_ms: Option<u64>);

    /// A driver's command was executed or refused after `elapsed`.
    fn command_ended(&self, kind: CommandKind, scope: &CommandScope, elapsed: Duration);
}

/// Discards all observations.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    fn timers_read(&self, _: Option<u64>) {}

    fn command_ended(&self, _: CommandKind, _: &CommandScope, _: Duration) {}
}
