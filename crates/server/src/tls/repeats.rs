//! Saying a thing once. A node or client that is not let in comes again, many times a second and for ever; the log
//! has it once, and then once in a while with how often it came. What is remembered is bounded: where more callers
//! than that come in turns, each is new.

use super::Port;
use super::refusal::Kind;
use crate::limits::{TLS_REFUSAL_INTERVAL, TLS_REFUSALS_MAX};
use lru::LruCache;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::Instant;

/// Who is refused where, and why. Without the port that it comes from, which is another one each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Refused {
    /// `None` when it was gone too soon to know.
    pub(super) from: Option<IpAddr>,
    /// Where it wanted in.
    pub(super) port: Port,
    /// Why it was not let in.
    pub(super) kind: Kind,
}

/// What has been said of whom.
#[derive(Debug)]
pub(super) struct Repeats {
    said: LruCache<Refused, Said>,
}

#[derive(Debug)]
struct Said {
    at: Instant,
    /// How often it came since, in silence.
    unsaid: u64,
}

impl Repeats {
    /// Nothing has been said.
    pub(super) fn new() -> Self {
        let entries_max = NonZeroUsize::new(TLS_REFUSALS_MAX).expect("a limit above 0");
        Self {
            said: LruCache::new(entries_max),
        }
    }

    /// Notes that somebody is refused now. `Some` when it is to be said, with how often it came in silence since it
    /// was said last.
    pub(super) fn note(&mut self, refused: Refused, now: Instant) -> Option<u64> {
        let first = Said { at: now, unsaid: 0 };
        let Some(said) = self.said.get_mut(&refused) else {
            self.said.put(refused, first);
            return Some(0);
        };
        if now.saturating_duration_since(said.at) < TLS_REFUSAL_INTERVAL {
            said.unsaid += 1;
            return None;
        }
        let unsaid = said.unsaid;
        *said = first;
        Some(unsaid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::net::Ipv4Addr;
    use std::time::Duration;
    use tokio_rustls::rustls::Error;

    fn refused(host: usize) -> Refused {
        let host = u32::try_from(host).unwrap();
        let error = io::Error::new(io::ErrorKind::InvalidData, Error::DecryptError);
        Refused {
            from: Some(Ipv4Addr::from(host).into()),
            port: Port::Peers,
            kind: Kind::of(&error),
        }
    }

    #[test]
    fn a_refusal_is_said_once_and_then_once_a_minute_with_how_many_there_were() {
        let start = Instant::now();
        let mut repeats = Repeats::new();
        assert_eq!(repeats.note(refused(1), start), Some(0));
        for tenth in 1..600 {
            let now = start + Duration::from_millis(tenth * 100);
            assert_eq!(repeats.note(refused(1), now), None, "{tenth}");
        }
        let minute = start + TLS_REFUSAL_INTERVAL;
        assert_eq!(repeats.note(refused(1), minute), Some(599));
        assert_eq!(repeats.note(refused(1), minute), None);
        assert_eq!(
            repeats.note(refused(1), minute + TLS_REFUSAL_INTERVAL),
            Some(1)
        );
    }

    #[test]
    fn another_caller_port_or_reason_is_said_at_once() {
        let now = Instant::now();
        let mut repeats = Repeats::new();
        let elsewhere = Refused {
            port: Port::Clients,
            ..refused(1)
        };
        let otherwise = Refused {
            kind: Kind::Other(None),
            ..refused(1)
        };
        let unknown = Refused {
            from: None,
            ..refused(1)
        };
        for refused in [refused(1), refused(2), elsewhere, otherwise, unknown] {
            assert_eq!(repeats.note(refused, now), Some(0), "{refused:?}");
            assert_eq!(repeats.note(refused, now), None, "{refused:?}");
        }
    }

    #[test]
    fn the_one_that_came_longest_ago_is_forgotten() {
        let now = Instant::now();
        let mut repeats = Repeats::new();
        for host in 0..TLS_REFUSALS_MAX {
            assert_eq!(repeats.note(refused(host), now), Some(0));
        }
        assert_eq!(repeats.note(refused(0), now), None, "it came again");
        assert_eq!(repeats.note(refused(TLS_REFUSALS_MAX), now), Some(0));
        assert_eq!(repeats.said.len(), TLS_REFUSALS_MAX);
        assert_eq!(repeats.note(refused(0), now), None);
        assert_eq!(repeats.note(refused(1), now), Some(0), "it was forgotten");
    }
}
