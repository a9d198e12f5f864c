//! What the leader does because time passes or state asks for it (design rule 6).
//!
//! A node's pump listens to what is applied: it feeds the open polls and wakes the drivers. The
//! drivers run only while the node leads. They are woken by effects and by the next deadline, not
//! by polling; what they act on is read from the tables, so a new leader finds all of it.

mod backoff;
mod checks;
mod dispatch;
mod health;
mod pump;
mod retention;
mod schedules;
mod signals;
mod sweep;
mod term;
mod timers;

pub(crate) use pump::start;

use crate::context::Context;
use crate::errors::Refusal;
use crate::limits::OBLIGATION_DEADLINE;
use crate::workers::Hub;
use flotilla_engine::{Command, Reply};
use signals::Signals;
use std::sync::Arc;
use tokio::time::Instant;

/// What every driver works with.
#[derive(Clone)]
struct Driver {
    context: Arc<Context>,
    hub: Arc<Hub>,
    signals: Arc<Signals>,
}

impl Driver {
    /// Submits the command of one obligation.
    async fn submit(&self, command: Command) -> Result<Reply, Refusal> {
        let deadline = Instant::now() + OBLIGATION_DEADLINE;
        self.context.gateway.submit(command, deadline).await
    }
}
