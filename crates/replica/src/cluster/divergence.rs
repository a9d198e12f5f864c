//! Detects divergence (design rule 11): each replica reports its digest, and one that differs from
//! a majority stops.

use crate::control::ControlWriter;
use crate::fatal::FatalError;
use crate::lifecycle::Lifecycle;
use crate::proposal::Control;
use crate::state::applier::AppliedState;
use crate::state::rows::{self, AppliedPosition, Divergence};
use crate::state::store::StateStore;
use flotilla_engine::store::Writes;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// A report that is not accepted within this time is skipped: the next index brings another.
const REPORT_TIMEOUT: Duration = Duration::from_secs(10);

/// Reports this node's digest at every index that all members report.
pub(crate) async fn report_digests(
    node_id: u64,
    mut checkpoints: watch::Receiver<AppliedPosition>,
    control_writer: ControlWriter,
) {
    while checkpoints.changed().await.is_ok() {
        let AppliedPosition { log_id, digest, .. } = *checkpoints.borrow_and_update();
        let Some(log_id) = log_id else { continue };
        let control = Control::DigestReport {
            node: node_id,
            index: log_id.index(),
            digest,
        };
        if let Err(error) = control_writer
            .write(control, Instant::now() + REPORT_TIMEOUT)
            .await
        {
            tracing::warn!(index = log_id.index(), %error, "a digest could not be reported");
        }
    }
}

/// What a replica needs to stop when it has diverged.
pub(crate) struct DivergenceWatch {
    pub(crate) applied_state: AppliedState,
    pub(crate) store: Arc<dyn StateStore>,
    pub(crate) lifecycle: Lifecycle,
}

impl DivergenceWatch {
    /// Stops this replica when a majority proves its state wrong, and raises the alarm when no majority
    /// agrees.
    pub(crate) async fn run(self) {
        let mut divergence = self.applied_state.divergence.subscribe();
        let mut split = self.applied_state.split.subscribe();
        loop {
            tokio::select! {
                changed = divergence.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let found = divergence.borrow_and_update().clone();
                    if let Some(found) = found {
                        return self.stop(found);
                    }
                }
                changed = split.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let index = *split.borrow_and_update();
                    tracing::error!(?index, "the replicas' states differ and no majority agrees");
                }
            }
        }
    }

    /// Records the divergence, so that a restart does not serve the state either, and ends the process.
    fn stop(&self, divergence: Divergence) {
        let mut writes = Writes::new();
        rows::put_divergence(&mut writes, &divergence);
        if let Err(error) = self.store.write(&writes).and_then(|()| self.store.flush()) {
            tracing::error!(%error, "the divergence could not be recorded");
        }
        self.lifecycle.fail(FatalError::Diverged(divergence));
    }
}
