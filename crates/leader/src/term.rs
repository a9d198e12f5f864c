//! A leader's term: its first command, and the drivers that run while it lasts.

use crate::drivers::{Backoff, Driver, complete_formation, run_all};
use crate::error::Error;
use flotilla_engine::{BeginTerm, Command};
use flotilla_replica::Leadership;
use tokio::sync::watch;

/// Leads whenever this node is the leader, until shutdown.
pub(crate) async fn run_terms(driver: Driver) {
    let mut leadership = driver.context.replica.leadership();
    let shutdown = driver.context.shutdown.clone();
    loop {
        let term = tokio::select! {
            term = begun(&mut leadership) => term,
            () = shutdown.cancelled() => None,
        };
        let Some(term) = term else { return };
        tracing::info!(term, "this node leads");
        // Hints are kept from here on; what came before, the drivers find in the state.
        driver.wakeups.clear();
        driver.hub().begin_term();
        tokio::select! {
            () = lead(&driver, term) => {}
            () = ended(&mut leadership, term) => tracing::info!(term, "this node no longer leads"),
            () = shutdown.cancelled() => {}
        }
        driver.hub().end_term();
        driver.context.observer.timers_read(None);
    }
}

/// The term in which this node leads; `None` if the replica has stopped.
async fn begun(leadership: &mut watch::Receiver<Leadership>) -> Option<u64> {
    let now = leadership
        .wait_for(|now| now.is_self && now.is_ready)
        .await
        .ok()?;
    Some(now.term)
}

async fn ended(leadership: &mut watch::Receiver<Leadership>, term: u64) {
    // A closed channel ends the term as well.
    drop(
        leadership
            .wait_for(|now| !now.is_self || now.term != term)
            .await,
    );
}

/// Leads until the caller drops it. A new cluster completes its formation meanwhile.
async fn lead(driver: &Driver, term: u64) {
    tokio::join!(begin_and_drive(driver, term), complete_formation(driver));
}

/// Begins the term and runs the drivers.
///
/// The term's first command gives leases their grace: without it, leases that expired while there
/// was no leader would be taken from workers that could not touch them. So it is retried until it
/// is accepted or the term ends.
async fn begin_and_drive(driver: &Driver, term: u64) {
    let mut backoff = Backoff::default();
    let mut is_logged = false;
    while let Err(error) = begin_term(driver, term).await {
        // Logged once: without a quorum, this may continue for long.
        if is_logged {
            tracing::debug!(%error, "the term has not begun yet");
        } else {
            tracing::warn!(%error, "the term has not begun yet");
        }
        is_logged = true;
        backoff.wait().await;
    }
    loop {
        tokio::select! {
            () = run_all(driver) => return,
            () = driver.wakeups.lost() => {
                tracing::warn!("the drivers fell behind the applied entries and restart");
            }
        }
    }
}

async fn begin_term(driver: &Driver, term: u64) -> Result<(), Error> {
    let command = Command::of_cluster(BeginTerm { term });
    driver.submit(command).await.map(drop)
}
