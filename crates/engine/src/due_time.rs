//! Times that callers and workers give, absolute or as a delay.

use serde::{Deserialize, Serialize};

/// A time at which something is due. One that is past is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DueTime {
    /// At a time.
    At {
        /// In milliseconds since the Unix epoch.
        ms: u64,
    },
    /// After a delay.
    After {
        /// In milliseconds.
        ms: u64,
    },
}

impl DueTime {
    /// The time in milliseconds, if it is yet to come; at most `max_ms` ahead.
    pub(crate) fn due_ms(self, now_ms: u64, max_ms: u64) -> Option<u64> {
        let due_ms = match self {
            Self::At { ms } => ms,
            Self::After { ms } => now_ms.saturating_add(ms),
        };
        let due_ms = due_ms.min(now_ms.saturating_add(max_ms));
        (due_ms > now_ms).then_some(due_ms)
    }
}
