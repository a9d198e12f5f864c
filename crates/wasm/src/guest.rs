//! What the host keeps for one call.

use crate::host::Host;
use crate::limiter::Limiter;
use crate::log::Logs;
use crate::outcome::OutcomeName;

/// The host's side of one instance; dropped with it.
pub(crate) struct Guest {
    pub(crate) host: Box<dyn Host>,
    pub(crate) limiter: Limiter,
    pub(crate) logs: Logs,
    pub(crate) outcome: OutcomeName,
}

impl Guest {
    pub(crate) fn new(host: Box<dyn Host>, limiter: Limiter) -> Self {
        Self {
            host,
            limiter,
            logs: Logs::default(),
            outcome: OutcomeName::SUCCESS,
        }
    }
}
