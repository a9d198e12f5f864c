//! Looking at the files again: certificates are renewed without a restart.

use super::{Tls, TlsInvalid};
use crate::limits::{TLS_EXPIRY_NOTICE, TLS_RELOAD_INTERVAL};
use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// What the log has.
#[derive(Default)]
struct Told {
    /// What was wrong with the files when they were looked at last.
    fault: Option<String>,
    /// What the certificate in use was like then.
    age: Age,
    /// Somebody asks: what the log has already is said again.
    is_asked: bool,
}

/// How long a certificate is still valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Age {
    /// Long enough.
    #[default]
    Fresh,
    /// Less than [`TLS_EXPIRY_NOTICE`].
    Ending,
    /// No more.
    Over,
}

/// Looks at the files again and again, at SIGHUP at once, until the node stops.
pub(crate) fn keep_fresh(shutdown: CancellationToken, tls: Arc<Tls>) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut hangup = signal(SignalKind::hangup())
            .inspect_err(|error| tracing::warn!(%error, "SIGHUP cannot be caught"))
            .ok();
        let mut told = Told::default();
        loop {
            told.is_asked = tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(TLS_RELOAD_INTERVAL) => false,
                () = asked(hangup.as_mut()) => true,
            };
            look(&tls, &mut told).await;
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

/// Looks once, and says what was not `told` before.
async fn look(tls: &Arc<Tls>, told: &mut Told) {
    let looking = tls.clone();
    // It reads files.
    let Ok(refreshed) = spawn_blocking(move || looking.refresh()).await else {
        return;
    };
    tell_files(tls, told, refreshed);
    tell_age(tls, told);
}

/// What the files are like.
fn tell_files(tls: &Tls, told: &mut Told, refreshed: Result<bool, TlsInvalid>) {
    let error = match refreshed {
        Ok(is_new) => {
            let was_bad = told.fault.take().is_some();
            let until = tls.expiry();
            if is_new {
                tracing::info!(until, "new connections use the new certificates");
            } else if was_bad {
                tracing::info!(until, "the files of certificates are as before again");
            }
            return;
        }
        Err(error) => error,
    };
    let hint = error.hint();
    let cause = error.source().map(|cause| format!(": {cause}"));
    let error = format!("{error}{}", cause.unwrap_or_default());
    let is_told = told.fault.as_ref() == Some(&error) && !told.is_asked;
    if !is_told {
        tracing::error!(
            error,
            hint,
            "the new certificates are no good: the old ones stay in use"
        );
    }
    told.fault = Some(error);
}

/// How long the certificate in use is still valid: whether or not there are new files, nothing works without it.
fn tell_age(tls: &Tls, told: &mut Told) {
    let age = Age::of(tls.expiry_seconds(), SystemTime::now());
    let is_told = told.age == age && !told.is_asked;
    told.age = age;
    if is_told {
        return;
    }
    let until = tls.expiry();
    match age {
        Age::Fresh => {}
        Age::Ending => tracing::warn!(until, "the certificate in use ends within a day"),
        Age::Over => tracing::error!(
            until,
            "the certificate in use is over: nobody trusts this node until it has a new one"
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
