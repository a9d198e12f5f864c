//! Bounds how often a node checks credentials that it does not know (X9).

use crate::errors::{Refusal, ServerCode};
use crate::limits::{BAD_CREDENTIALS_PER_ADDRESS_MAX, CREDENTIAL_CHECKS_MAX};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

const PERIOD: Duration = Duration::from_secs(1);

/// Checks of credentials in the last second that the node did not know, and how many of these credentials were bad, by the
/// address from which they came. A secret cannot be guessed; but each check waits for the leader. The credentials that the node
/// knows are not counted, so an attacker keeps out no other caller of its address.
#[derive(Debug)]
pub(crate) struct UnknownCredentials {
    period: Mutex<Period>,
}

#[derive(Debug)]
struct Period {
    began: Instant,
    checks: u32,
    /// Bad credentials.
    by_address: HashMap<Option<IpAddr>, u32>,
}

impl Period {
    fn begin() -> Self {
        Self {
            began: Instant::now(),
            checks: 0,
            by_address: HashMap::new(),
        }
    }
}

impl UnknownCredentials {
    /// No credentials yet.
    pub(super) fn new() -> Self {
        Self {
            period: Mutex::new(Period::begin()),
        }
    }

    /// Begins to check one more credential from this address.
    ///
    /// # Errors
    /// There were too many checks, or too many bad credentials from the address.
    pub(super) fn begin_check(&self, address: Option<IpAddr>) -> Result<(), Refusal> {
        let mut period = self.period();
        let bad = period.by_address.get(&address).copied().unwrap_or_default();
        if bad >= BAD_CREDENTIALS_PER_ADDRESS_MAX {
            let text = format!(
                "expected at most {BAD_CREDENTIALS_PER_ADDRESS_MAX} unknown credentials per second from one address, but there \
                 were more"
            );
            let hint =
                "check the token; if it was created just now, send the request again in a second";
            return Err(Refusal::new(ServerCode::CredentialAttempts, text)
                .with_hint(hint)
                .after(PERIOD));
        }
        if period.checks >= CREDENTIAL_CHECKS_MAX {
            let text = format!(
                "expected to check the credential, but this node has checked {CREDENTIAL_CHECKS_MAX} unknown ones in the last \
                 second"
            );
            return Err(Refusal::new(ServerCode::CredentialUncheckable, text)
                .with_hint("send the request again, or send it to another node")
                .after(PERIOD));
        }
        period.checks += 1;
        Ok(())
    }

    /// Counts one more bad credential from this address.
    pub(super) fn record_bad(&self, address: Option<IpAddr>) {
        let mut period = self.period();
        *period.by_address.entry(address).or_default() += 1;
    }

    /// The current period.
    fn period(&self) -> MutexGuard<'_, Period> {
        let mut period = self.period.lock().unwrap_or_else(PoisonError::into_inner);
        if period.began.elapsed() >= PERIOD {
            *period = Period::begin();
        }
        period
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::from(number.to_be_bytes()))
    }

    #[tokio::test(start_paused = true)]
    async fn bad_credentials_of_an_address_are_bounded() {
        let unknown = UnknownCredentials::new();
        for _ in 0..BAD_CREDENTIALS_PER_ADDRESS_MAX {
            unknown.begin_check(address(1)).unwrap();
            // A good one.
            unknown.begin_check(address(1)).unwrap();
            unknown.record_bad(address(1));
        }
        let refusal = unknown.begin_check(address(1)).unwrap_err();
        assert!(refusal.to_string().contains("one address"), "{refusal}");
        unknown.begin_check(address(2)).unwrap();
        tokio::time::advance(PERIOD).await;
        unknown.begin_check(address(1)).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn many_addresses_share_the_checks_of_the_node() {
        let unknown = UnknownCredentials::new();
        for number in 0..CREDENTIAL_CHECKS_MAX {
            unknown.begin_check(address(number)).unwrap();
        }
        let refusal = unknown
            .begin_check(address(CREDENTIAL_CHECKS_MAX))
            .unwrap_err();
        assert!(refusal.to_string().contains("this node"), "{refusal}");
    }
}
