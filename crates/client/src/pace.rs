//! How long a call waits for one node before it also calls another one.

use crate::retry::Intent;
use std::time::Duration;
use tokio::time::Instant;

/// A read is hedged after this long: far beyond what a healthy node takes.
pub(crate) const HEDGE_DELAY: Duration = Duration::from_millis(300);
/// A call waits for one node at least this long.
pub(crate) const PATIENCE_MIN: Duration = Duration::from_secs(1);

/// How soon a node responds to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As soon as it can.
    Prompt,
    /// After up to this long, because the request asks it to wait.
    Waits(Duration),
    /// At any time; or no other node must get the request as well, because the request has no id by
    /// which the cluster would recognize the repeat.
    Unknown,
}

impl Pace {
    /// When a read is sent to a second node; `None` if it is not hedged.
    pub(crate) fn hedge_at(self, intent: Intent, now: Instant) -> Option<Instant> {
        match (self, intent) {
            (Self::Prompt, Intent::Read) => Some(now + HEDGE_DELAY),
            (Self::Prompt, Intent::Write) | (Self::Waits(_) | Self::Unknown, _) => None,
        }
    }

    /// When a node that was called `now` counts as stuck: after a third of the time that is left for
    /// a read, and after half of it for a write. `None` if never.
    pub(crate) fn stuck_at(
        self,
        intent: Intent,
        now: Instant,
        deadline: Instant,
    ) -> Option<Instant> {
        let wait = match self {
            Self::Prompt => Duration::ZERO,
            Self::Waits(wait) => wait,
            Self::Unknown => return None,
        };
        let left = deadline.checked_duration_since(now)?.checked_sub(wait)?;
        let part = match intent {
            Intent::Read => left / 3,
            Intent::Write => left / 2,
        };
        let stuck_at = now + wait + part.max(PATIENCE_MIN);
        (stuck_at < deadline).then_some(stuck_at)
    }
}
