//! ABI 1, Flo's own (A7).

mod call;
mod imports;
mod refusal;
pub(crate) mod requests;

use crate::host::Host;
use crate::outcome::OutcomeName;
use crate::sandbox::Requests;

pub(crate) use call::run;
pub(crate) use imports::link;

/// What a guest's imports act on.
pub(crate) struct Services {
    host: Box<dyn Host>,
    outcome: OutcomeName,
    requests: Requests,
}

impl requests::HasRequests for Services {
    fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }
}
