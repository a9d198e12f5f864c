//! Bounds how often a node checks credentials that it does not know (X9).

use crate::errors::{Refusal, ServerCode};
use crate::limits::{UNKNOWN_CREDENTIALS_MAX, UNKNOWN_CREDENTIALS_PER_ADDRESS_MAX};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const PERIOD: Duration = Duration::from_secs(1);

/// The credentials of the last second that the node did not know, by the address from which they came. A correct guess of a
/// secret is out of the question; but each check waits for the leader. The credentials that the node knows are not counted, so
/// an attacker keeps out no other caller of its address.
#[derive(Debug, Default)]
pub(crate) struct UnknownCredentials {
    period: Mutex<Option<Period>>,
}

#[derive(Debug)]
struct Period {
    began: Instant,
    total: u32,
    /// At most as many as the total.
    by_address: HashMap<Option<IpAddr>, u32>,
}

impl Period {
    fn begin() -> Self {
        Self {
            began: Instant::now(),
            total: 0,
            by_address: HashMap::new(),
        }
    }
}

impl UnknownCredentials {
    /// Counts one more credential from this address.
    ///
    /// # Errors
    /// There were too many.
    pub(super) fn count(&self, address: Option<IpAddr>) -> Result<(), Refusal> {
        let mut period = self.period.lock().unwrap_or_else(PoisonError::into_inner);
        if period
            .as_ref()
            .is_none_or(|one| one.began.elapsed() >= PERIOD)
        {
            *period = None;
        }
        let period = period.get_or_insert_with(Period::begin);
        let from_address = period.by_address.get(&address).copied().unwrap_or_default();
        if from_address >= UNKNOWN_CREDENTIALS_PER_ADDRESS_MAX {
            let text = format!(
                "expected at most {UNKNOWN_CREDENTIALS_PER_ADDRESS_MAX} unknown credentials per second from one address, but \
                 there were more"
            );
            return Err(Refusal::new(ServerCode::CredentialAttempts, text)
                .with_hint(
                    "check the token; other callers of this address with a valid one are served",
                )
                .after(PERIOD));
        }
        if period.total >= UNKNOWN_CREDENTIALS_MAX {
            let text = format!(
                "expected to check the credential, but this node has checked {UNKNOWN_CREDENTIALS_MAX} unknown ones in the last \
                 second"
            );
            return Err(Refusal::new(ServerCode::CredentialUncheckable, text)
                .with_hint("send the request again, or send it to another node")
                .after(PERIOD));
        }
        period.total += 1;
        period.by_address.insert(address, from_address + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::from(number.to_be_bytes()))
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_a_share_of_each_second() {
        let unknown = UnknownCredentials::default();
        for _ in 0..UNKNOWN_CREDENTIALS_PER_ADDRESS_MAX {
            unknown.count(address(1)).unwrap();
        }
        let refusal = unknown.count(address(1)).unwrap_err();
        assert!(refusal.to_string().contains("one address"), "{refusal}");
        unknown.count(address(2)).unwrap();
        tokio::time::advance(PERIOD).await;
        unknown.count(address(1)).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn many_addresses_share_the_checks_of_the_node() {
        let unknown = UnknownCredentials::default();
        for number in 0..UNKNOWN_CREDENTIALS_MAX {
            unknown.count(address(number)).unwrap();
        }
        let refusal = unknown.count(address(UNKNOWN_CREDENTIALS_MAX)).unwrap_err();
        assert!(refusal.to_string().contains("this node"), "{refusal}");
    }
}
