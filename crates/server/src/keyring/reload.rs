//! Reloads the keyring: keys are rotated without a restart.

use crate::context::Context;
use crate::limits::KEYRING_RELOAD_INTERVAL;
use std::error::Error;
use std::sync::Arc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;

/// Checks the file periodically until the node stops.
pub(crate) fn start(context: Arc<Context>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut logged_fault = None;
        while context
            .shutdown
            .run_until_cancelled(sleep(KEYRING_RELOAD_INTERVAL))
            .await
            .is_some()
        {
            look(&context, &mut logged_fault).await;
        }
    })
}

/// Checks once, and logs what has not been logged.
async fn look(context: &Arc<Context>, logged_fault: &mut Option<String>) {
    let keyring = Arc::clone(&context.keyring);
    // It reads a file.
    let Ok(refreshed) = spawn_blocking(move || keyring.refresh()).await else {
        return;
    };
    match refreshed {
        Ok(is_new) => {
            *logged_fault = None;
            if is_new {
                let keys = context.keyring.summary();
                tracing::info!(keys, "the keyring has changed; the first key is in use");
            }
        }
        Err(error) => {
            let cause = error.source().map(|cause| format!(": {cause}"));
            let fault = format!("{error}{}", cause.unwrap_or_default());
            if logged_fault.as_ref() != Some(&fault) {
                let hint = error.hint();
                tracing::error!(
                    error = fault,
                    hint,
                    "the keyring is invalid: the old keys stay in use"
                );
            }
            *logged_fault = Some(fault);
        }
    }
}
