//! Reloads the keyring: keys are rotated without a restart.

use crate::context::Context;
use crate::last_fault::LastFault;
use crate::limits::KEYRING_RELOAD_INTERVAL;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

/// Checks the file periodically until the node stops.
pub(crate) fn start(context: Arc<Context>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut last_fault = LastFault::default();
        while context
            .shutdown
            .run_until_cancelled(sleep(KEYRING_RELOAD_INTERVAL))
            .await
            .is_some()
        {
            look(&context, &mut last_fault).await;
        }
    })
}

/// Checks once, and logs what has not been logged.
async fn look(context: &Arc<Context>, last_fault: &mut LastFault) {
    let keyring = Arc::clone(&context.keyring);
    // It reads a file.
    let Ok(refreshed) = spawn_blocking(move || keyring.refresh()).await else {
        return;
    };
    match refreshed {
        Ok(is_new) => {
            last_fault.clear();
            if is_new {
                let keys = context.keyring.summary();
                tracing::info!(keys, "the keyring has changed; the first key is in use");
            }
        }
        Err(error) => {
            if let Some(fault) = last_fault.note(&error) {
                tracing::error!(
                    error = fault,
                    hint = error.hint(),
                    "the keyring is invalid: the old keys stay in use"
                );
            }
        }
    }
}
