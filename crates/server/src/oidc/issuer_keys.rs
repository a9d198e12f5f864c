//! The keys of an issuer, kept fresh while a node runs (X13).

use super::fetch::{FetchedKeys, KeyFetchError, KeyFetcher};
use crate::last_fault::LastFault;
use crate::limits::{
    OIDC_FILE_INTERVAL, OIDC_KEYS_FRESH, OIDC_KEYS_STALE_MAX, OIDC_REFETCH_INTERVAL,
};
use bytes::Bytes;
use flotilla_oidc::KeySet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

/// The keys of an issuer. A task fetches them periodically, and when a token names a key that is not among them.
pub(super) struct IssuerKeys {
    fetcher: KeyFetcher,
    state: watch::Sender<State>,
    wanted: Notify,
    /// When a token last made the node fetch the keys.
    wanted_at: Mutex<Option<Instant>>,
    pub(super) fetches: Fetches,
}

/// Fetches since the node's start.
#[derive(Debug, Default)]
pub(super) struct Fetches {
    pub(super) succeeded: AtomicU64,
    pub(super) failed: AtomicU64,
}

/// The keys as they were fetched last.
#[derive(Clone, Debug)]
pub(super) struct CurrentKeys {
    pub(super) keys: Arc<KeySet>,
    /// Changes whenever the keys do.
    pub(super) generation: u64,
}

#[derive(Default)]
struct State {
    current: Option<CurrentKeys>,
    text: Bytes,
    fetched_at: Option<Instant>,
    has_failed: bool,
    attempts: u64,
}

/// What an attempt to get newer keys was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refetch {
    /// The keys were fetched, or were fetched for another token a moment ago.
    Done,
    /// They could not be fetched.
    Failed,
}

impl IssuerKeys {
    pub(super) fn new(fetcher: KeyFetcher) -> Self {
        Self {
            fetcher,
            state: watch::Sender::new(State::default()),
            wanted: Notify::new(),
            wanted_at: Mutex::default(),
            fetches: Fetches::default(),
        }
    }

    /// Reads the keys if they are in a file, without which the node does not start.
    pub(super) async fn load_file(&self) -> Result<(), KeyFetchError> {
        match self.fetcher.is_file() {
            true => self.attempt().await.map(drop),
            false => Ok(()),
        }
    }

    /// The keys, unless there were none for too long.
    pub(super) fn current(&self) -> Option<CurrentKeys> {
        let state = self.state.borrow();
        let age = state.fetched_at?.elapsed();
        let current = state.current.clone();
        current.filter(|_| self.fetcher.is_file() || age < OIDC_KEYS_STALE_MAX)
    }

    /// How long ago the keys were fetched; `None` if they never were.
    pub(super) fn age(&self) -> Option<Duration> {
        let fetched_at = self.state.borrow().fetched_at;
        fetched_at.map(|fetched_at| fetched_at.elapsed())
    }

    /// Waits until the keys are fetched once more, or for the first time, unless a token has made the node do so a moment ago.
    pub(super) async fn refetch(&self, deadline: Instant) -> Refetch {
        let mut states = self.state.subscribe();
        let seen = states.borrow_and_update().attempts;
        // The first attempt needs no request.
        if seen > 0 {
            if !self.may_want() {
                return self.result();
            }
            self.wanted.notify_one();
        }
        let attempted = states.wait_for(|state| state.attempts > seen);
        // A call whose time is over gets the result so far.
        let _ = timeout_at(deadline, attempted).await;
        self.result()
    }

    fn result(&self) -> Refetch {
        match self.state.borrow().has_failed {
            true => Refetch::Failed,
            false => Refetch::Done,
        }
    }

    /// Whether a token may make the node fetch the keys now.
    fn may_want(&self) -> bool {
        let mut wanted_at = self
            .wanted_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let may = wanted_at.is_none_or(|last| now - last >= OIDC_REFETCH_INTERVAL);
        if may {
            *wanted_at = Some(now);
        }
        may
    }

    /// Fetches the keys periodically, and when they are wanted, until the node stops.
    pub(super) async fn keep_fresh(&self, name: &str, shutdown: CancellationToken) {
        let mut last_fault = LastFault::default();
        loop {
            let Some(attempt) = shutdown.run_until_cancelled(self.attempt()).await else {
                return;
            };
            let interval = match &attempt {
                Ok(is_new) => {
                    let was_faulty = last_fault.clear();
                    if *is_new {
                        let count = self.current().map_or(0, |current| current.keys.count());
                        tracing::info!(issuer = name, count, "the issuer has new keys");
                    } else if was_faulty {
                        tracing::info!(issuer = name, "the keys of the issuer are fetched again");
                    }
                    OIDC_KEYS_FRESH
                }
                Err(error) => {
                    if let Some(fault) = last_fault.note(error) {
                        tracing::error!(
                            issuer = name,
                            error = fault,
                            "the keys of the issuer cannot be fetched: the old ones stay in use"
                        );
                    }
                    OIDC_REFETCH_INTERVAL
                }
            };
            let interval = match self.fetcher.is_file() {
                true => OIDC_FILE_INTERVAL,
                false => interval,
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = self.wanted.notified() => {}
                () = sleep(interval) => {}
            }
        }
    }

    /// Fetches the keys once. Returns whether they have changed.
    pub(super) async fn attempt(&self) -> Result<bool, KeyFetchError> {
        let fetched = self.fetcher.fetch().await;
        let counter = match fetched.is_ok() {
            true => &self.fetches.succeeded,
            false => &self.fetches.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        let mut result = Ok(false);
        self.state.send_modify(|state| {
            state.attempts += 1;
            state.has_failed = fetched.is_err();
            result = fetched.map(|fetched| state.take(fetched));
        });
        result
    }
}

impl State {
    /// Takes fetched keys; true if they are others.
    fn take(&mut self, fetched: FetchedKeys) -> bool {
        self.fetched_at = Some(Instant::now());
        if self.current.is_some() && self.text == fetched.text {
            return false;
        }
        let generation = self
            .current
            .as_ref()
            .map_or(0, |current| current.generation);
        self.text = fetched.text;
        self.current = Some(CurrentKeys {
            keys: Arc::new(fetched.keys),
            generation: generation + 1,
        });
        true
    }
}
