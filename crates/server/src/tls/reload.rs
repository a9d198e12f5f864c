//! Looking at the files again: certificates are renewed without a restart.

use super::Tls;
use crate::limits::TLS_RELOAD_INTERVAL;
use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Looks at the files again and again, at SIGHUP at once, until the node stops.
pub(crate) fn keep_fresh(shutdown: CancellationToken, tls: Arc<Tls>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut hangup = signal(SignalKind::hangup())
            .inspect_err(|error| tracing::warn!(%error, "SIGHUP cannot be caught"))
            .ok();
        let mut told = None;
        loop {
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(TLS_RELOAD_INTERVAL) => {}
                () = asked(hangup.as_mut()) => told = None,
            }
            told = look(&tls, told).await;
        }
    })
}

async fn asked(hangup: Option<&mut Signal>) {
    match hangup {
        Some(hangup) => {
            hangup.recv().await;
        }
        None => pending().await,
    }
}

/// Looks once. Returns what is wrong, which is told when it is not what was `told` before.
async fn look(tls: &Arc<Tls>, told: Option<String>) -> Option<String> {
    let looking = tls.clone();
    // It reads files.
    let refreshed = spawn_blocking(move || looking.refresh()).await.ok()?;
    let error = match refreshed {
        Ok(is_new) => {
            if is_new {
                let until = tls.expiry();
                tracing::info!(until, "new connections use the new certificates");
            }
            return None;
        }
        Err(error) => error,
    };
    let hint = error.hint();
    let cause = error.source().map(|cause| format!(": {cause}"));
    let error = format!("{error}{}", cause.unwrap_or_default());
    if told.as_deref() != Some(&error) {
        tracing::error!(
            error,
            hint,
            "the new certificates are no good: the old ones stay in use"
        );
    }
    Some(error)
}
