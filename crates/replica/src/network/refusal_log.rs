//! Throttles the log of refused calls: a caller may try again and again.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How often the log says that calls from one address are refused.
const INTERVAL: Duration = Duration::from_secs(60);
/// The addresses that are remembered. Calls from more of them within the interval are not logged.
const ADDRESSES_MAX: usize = 256;

/// When refused calls were logged, by the address of their caller, if it is known.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    logged: Mutex<HashMap<Option<IpAddr>, Instant>>,
}

impl RefusalLog {
    /// Whether a refused call from this address is to be logged now.
    pub(crate) fn is_due(&self, address: Option<IpAddr>) -> bool {
        let now = Instant::now();
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |at: &Instant| now.duration_since(*at) < INTERVAL;
        if logged.get(&address).is_some_and(is_recent) {
            return false;
        }
        if logged.len() >= ADDRESSES_MAX {
            logged.retain(|_, at| is_recent(at));
        }
        if logged.len() >= ADDRESSES_MAX {
            return false;
        }
        logged.insert(address, now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[tokio::test(start_paused = true)]
    async fn each_address_is_logged_once_a_minute_and_the_memory_is_bounded() {
        let log = RefusalLog::default();
        let address = |number| Some(IpAddr::from(Ipv4Addr::from_bits(number)));
        for number in 0..256 {
            assert!(log.is_due(address(number)), "{number}");
            assert!(!log.is_due(address(number)), "{number}");
        }
        assert!(!log.is_due(None), "there is no room");
        tokio::time::advance(INTERVAL).await;
        assert!(log.is_due(None));
        assert!(log.is_due(address(7)));
        assert!(!log.is_due(address(7)));
        let remembered = log.logged.lock().unwrap_or_else(PoisonError::into_inner);
        assert_eq!(remembered.len(), 2);
    }
}
