//! Reminds operators that the cluster is open (X2).

use crate::context::Context;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, interval};

const CHECK_INTERVAL: Duration = Duration::from_secs(10);
const WARNING_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Logs a warning once an hour while callers from other machines may do everything without a token.
pub(crate) fn start(context: Arc<Context>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut checks = interval(CHECK_INTERVAL);
        let mut warnings = Warnings::default();
        loop {
            tokio::select! {
                _ = checks.tick() => {}
                () = context.shutdown.cancelled() => return,
            }
            if warnings.is_due(is_open_beyond_loopback(&context)) {
                tracing::warn!(
                    "the cluster is open: callers from other machines may do everything without a token; \
                     `flo auth enable --dry-run` shows these callers"
                );
            }
        }
    })
}

/// Whether callers from other machines may do everything at this node without a token.
pub(crate) fn is_open_beyond_loopback(context: &Context) -> bool {
    let initial_access = context.node_gateway.initial_access();
    initial_access.is_open_beyond_loopback() && !context.caller_checks.requires_token()
}

/// When the last warning was logged.
#[derive(Debug, Default)]
struct Warnings {
    last: Option<Instant>,
}

impl Warnings {
    /// Whether to log another one now.
    fn is_due(&mut self, is_open: bool) -> bool {
        if !is_open {
            self.last = None;
            return false;
        }
        let is_due = self
            .last
            .is_none_or(|last| last.elapsed() >= WARNING_INTERVAL);
        if is_due {
            self.last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn an_open_cluster_is_mentioned_once_an_hour() {
        let mut warnings = Warnings::default();
        assert!(!warnings.is_due(false));
        assert!(warnings.is_due(true));
        advance(WARNING_INTERVAL - CHECK_INTERVAL).await;
        assert!(!warnings.is_due(true));
        advance(CHECK_INTERVAL).await;
        assert!(warnings.is_due(true));
        assert!(!warnings.is_due(false));
        assert!(warnings.is_due(true), "opened again");
    }
}
