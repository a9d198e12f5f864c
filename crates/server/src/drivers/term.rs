//! A leader's term: its first word, and the drivers that run while it lasts.

use super::{Driver, RETRY_DELAY, checks, dispatch, health, sweep, timers};
use crate::errors::Refusal;
use flotilla_engine::ids::Namespace;
use flotilla_engine::{BeginTerm, Body, Command};
use flotilla_replica::Leadership;
use tokio::sync::watch;
use tokio::time::sleep;

/// Leads whenever this node is the leader, until shutdown.
pub(super) async fn lead_again_and_again(driver: Driver) {
    let mut leadership = driver.context.gateway.replica().leadership();
    let shutdown = driver.context.shutdown.clone();
    loop {
        let term = tokio::select! {
            term = begun(&mut leadership) => term,
            () = shutdown.cancelled() => None,
        };
        let Some(term) = term else { return };
        tracing::info!(term, "this node leads");
        tokio::select! {
            () = lead(&driver) => {}
            () = ended(&mut leadership, term) => tracing::info!(term, "this node leads no more"),
            () = shutdown.cancelled() => {}
        }
        driver.hub.close_all();
    }
}

/// The term in which this node leads; `None` when the replica is gone.
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

/// Begins the term and runs the drivers, until the caller drops it.
///
/// Without its beginning the drivers would act without grace: leases that ran out while nobody led
/// would be taken from workers that could not touch them. So it is tried until it is accepted, or
/// the term is over.
async fn lead(driver: &Driver) {
    while let Err(refusal) = begin_term(driver).await {
        tracing::warn!(%refusal, "the term could not be begun");
        sleep(RETRY_DELAY).await;
    }
    tokio::join!(
        timers::drive(driver),
        dispatch::drive(driver),
        checks::drive(driver),
        health::drive(driver),
        sweep::drive(driver),
    );
}

async fn begin_term(driver: &Driver) -> Result<(), Refusal> {
    let body = Body::BeginTerm(BeginTerm {});
    let command = Command::new(Namespace::default_namespace(), body);
    driver
        .context
        .gateway
        .submit(command, Driver::deadline())
        .await
        .map(drop)
}
