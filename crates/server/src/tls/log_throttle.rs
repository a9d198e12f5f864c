//! Throttles the log of refused connections. A node or client that is refused reconnects many times
//! a second, forever; it is logged once, and then from time to time with a count. The memory is
//! bounded: if more callers than that alternate, each is logged as new.

use super::Port;
use super::refusal::Kind;
use crate::limits::{TLS_REFUSAL_INTERVAL, TLS_REFUSALS_MAX};
use lru::LruCache;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::Instant;

/// A refused caller, its port and the reason. The source port is omitted, because it changes with
/// each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct RefusedCaller {
    /// `None` if it disconnected before its address was known.
    pub(super) from: Option<IpAddr>,
    /// The port that it connected to.
    pub(super) port: Port,
    /// Why it was refused.
    pub(super) kind: Kind,
}

/// What was logged about which caller.
#[derive(Debug)]
pub(super) struct LogThrottle {
    logged: LruCache<RefusedCaller, LastLogged>,
}

#[derive(Debug)]
struct LastLogged {
    at: Instant,
    /// How many refusals were suppressed since.
    suppressed_count: u64,
}

impl LogThrottle {
    /// Nothing has been logged.
    pub(super) fn new() -> Self {
        let entries_max = NonZeroUsize::new(TLS_REFUSALS_MAX).expect("a limit above 0");
        Self {
            logged: LruCache::new(entries_max),
        }
    }

    /// Records a refusal. `Some` if it is to be logged, with the number of refusals that were
    /// suppressed since the last line.
    pub(super) fn note(&mut self, refused: RefusedCaller, now: Instant) -> Option<u64> {
        let first = LastLogged {
            at: now,
            suppressed_count: 0,
        };
        let Some(logged) = self.logged.get_mut(&refused) else {
            self.logged.put(refused, first);
            return Some(0);
        };
        if now.saturating_duration_since(logged.at) < TLS_REFUSAL_INTERVAL {
            logged.suppressed_count += 1;
            return None;
        }
        let suppressed_count = logged.suppressed_count;
        *logged = first;
        Some(suppressed_count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::net::Ipv4Addr;
    use std::time::Duration;
    use tokio_rustls::rustls::Error;

    fn refused(host: usize) -> RefusedCaller {
        let host = u32::try_from(host).unwrap();
        let error = io::Error::new(io::ErrorKind::InvalidData, Error::DecryptError);
        RefusedCaller {
            from: Some(Ipv4Addr::from(host).into()),
            port: Port::Peers,
            kind: Kind::of(&error),
        }
    }

    #[test]
    fn a_refusal_is_said_once_and_then_once_a_minute_with_how_many_there_were() {
        let start = Instant::now();
        let mut log_throttle = LogThrottle::new();
        assert_eq!(log_throttle.note(refused(1), start), Some(0));
        for tenth in 1..600 {
            let now = start + Duration::from_millis(tenth * 100);
            assert_eq!(log_throttle.note(refused(1), now), None, "{tenth}");
        }
        let minute = start + TLS_REFUSAL_INTERVAL;
        assert_eq!(log_throttle.note(refused(1), minute), Some(599));
        assert_eq!(log_throttle.note(refused(1), minute), None);
        assert_eq!(
            log_throttle.note(refused(1), minute + TLS_REFUSAL_INTERVAL),
            Some(1)
        );
    }

    #[test]
    fn another_caller_port_or_reason_is_logged_immediately() {
        let now = Instant::now();
        let mut log_throttle = LogThrottle::new();
        let elsewhere = RefusedCaller {
            port: Port::Clients,
            ..refused(1)
        };
        let otherwise = RefusedCaller {
            kind: Kind::Other(None),
            ..refused(1)
        };
        let unknown = RefusedCaller {
            from: None,
            ..refused(1)
        };
        for refused in [refused(1), refused(2), elsewhere, otherwise, unknown] {
            assert_eq!(log_throttle.note(refused, now), Some(0), "{refused:?}");
            assert_eq!(log_throttle.note(refused, now), None, "{refused:?}");
        }
    }

    #[test]
    fn the_one_that_came_longest_ago_is_forgotten() {
        let now = Instant::now();
        let mut log_throttle = LogThrottle::new();
        for host in 0..TLS_REFUSALS_MAX {
            assert_eq!(log_throttle.note(refused(host), now), Some(0));
        }
        assert_eq!(log_throttle.note(refused(0), now), None, "it came again");
        assert_eq!(log_throttle.note(refused(TLS_REFUSALS_MAX), now), Some(0));
        assert_eq!(log_throttle.logged.len(), TLS_REFUSALS_MAX);
        assert_eq!(log_throttle.note(refused(0), now), None);
        assert_eq!(
            log_throttle.note(refused(1), now),
            Some(0),
            "it was forgotten"
        );
    }
}
