//! Reloads the TLS files: certificates are renewed without a restart.

use super::{Tls, TlsInvalid};
use crate::last_fault::LastFault;
use crate::limits::{TLS_EXPIRY_NOTICE, TLS_RELOAD_INTERVAL};
use std::future::pending;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What was last logged.
#[derive(Default)]
struct LastLogged {
    /// The error in the files at the last check.
    fault: LastFault,
    /// The certificate's remaining validity at the last check.
    age: Age,
    /// The operator asked: what was logged before is logged again.
    is_requested: bool,
}

/// How long a certificate is still valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Age {
    /// Longer than [`TLS_EXPIRY_NOTICE`].
    #[default]
    Fresh,
    /// Less than [`TLS_EXPIRY_NOTICE`].
    Ending,
    /// It has expired.
    Over,
}

/// Checks the files periodically, and on SIGHUP immediately, until the node stops.
pub(crate) fn keep_fresh(shutdown: CancellationToken, tls: Arc<Tls>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut hangup = signal(SignalKind::hangup())
            .inspect_err(|error| tracing::warn!(%error, "SIGHUP cannot be handled"))
            .ok();
        let mut last_logged = LastLogged::default();
        loop {
            last_logged.is_requested = tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(TLS_RELOAD_INTERVAL) => false,
                () = reload_requested(hangup.as_mut()) => true,
            };
            look(&tls, &mut last_logged).await;
        }
    })
}

async fn reload_requested(hangup: Option<&mut Signal>) {
    match hangup {
        Some(hangup) => {
            hangup.recv().await;
        }
        None => pending().await,
    }
}

/// Checks once, and logs what `last_logged` does not contain.
async fn look(tls: &Arc<Tls>, last_logged: &mut LastLogged) {
    let looking = tls.clone();
    // It reads files.
    let Ok(refreshed) = spawn_blocking(move || looking.refresh()).await else {
        return;
    };
    tell_files(tls, last_logged, refreshed);
    tell_age(tls, last_logged);
}

/// Logs the state of the files.
fn tell_files(tls: &Tls, last_logged: &mut LastLogged, refreshed: Result<bool, TlsInvalid>) {
    let error = match refreshed {
        Ok(is_new) => {
            let was_bad = last_logged.fault.clear();
            let until = tls.expiry();
            if is_new {
                tracing::info!(until, "new connections use the new certificates");
            } else if was_bad {
                tracing::info!(until, "the certificate files match those in use again");
            }
            return;
        }
        Err(error) => error,
    };
    if last_logged.is_requested {
        last_logged.fault.clear();
    }
    if let Some(fault) = last_logged.fault.note(&error) {
        tracing::error!(
            error = fault,
            hint = error.hint(),
            "the new certificates are invalid: the old ones stay in use"
        );
    }
}

/// Logs how long the certificate in use is valid: whether or not there are new files, nothing works
/// without it.
fn tell_age(tls: &Tls, last_logged: &mut LastLogged) {
    let age = Age::of(tls.expiry_seconds(), SystemTime::now());
    let is_logged = last_logged.age == age && !last_logged.is_requested;
    last_logged.age = age;
    if is_logged {
        return;
    }
    let until = tls.expiry();
    match age {
        Age::Fresh => {}
        Age::Ending => tracing::warn!(until, "the certificate in use expires within a day"),
        Age::Over => tracing::error!(
            until,
            "the certificate in use has expired: no peer or client trusts this node until it has \
             a new one"
        ),
    }
}

impl Age {
    fn of(not_after_seconds: u64, now: SystemTime) -> Self {
        let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        match not_after_seconds.checked_sub(now.as_secs()) {
            None => Self::Over,
            Some(left) if left < TLS_EXPIRY_NOTICE.as_secs() => Self::Ending,
            Some(_) => Self::Fresh,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_certificate_ends_within_its_last_day_and_is_over_when_its_last_second_is() {
        let end = 1_580_515_200;
        let at = |seconds| Age::of(end, UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), Age::Fresh);
        assert_eq!(at(end - 86_400), Age::Fresh);
        assert_eq!(at(end - 86_399), Age::Ending);
        assert_eq!(at(end), Age::Ending);
        assert_eq!(at(end + 1), Age::Over);
    }
}
