//! What the leader does because time passes or state asks for it (design rule 6).
//!
//! A node's pump listens to what is applied: it feeds the open polls and wakes the drivers. The
//! drivers run only while the node leads. They are woken by effects and by the next deadline, not
//! by polling; what they act on is read from the tables, so a new leader finds all of it.

mod checks;
mod dispatch;
mod health;
mod pump;
mod signals;
mod sweep;
mod term;
mod timers;

pub(crate) use pump::start;

use crate::context::Context;
use crate::workers::Hub;
use signals::Signals;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long one obligation's command may take before its driver looks at the state again.
const COMMAND_DEADLINE: Duration = Duration::from_secs(10);
/// How long a driver waits after a refusal that time alone can mend.
const RETRY_DELAY: Duration = Duration::from_millis(50);

/// What every driver works with.
#[derive(Clone)]
struct Driver {
    context: Arc<Context>,
    hub: Arc<Hub>,
    signals: Arc<Signals>,
}

impl Driver {
    fn deadline() -> Instant {
        Instant::now() + COMMAND_DEADLINE
    }
}
