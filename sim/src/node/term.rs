//! A leader's term: its first command, and the drivers that run while it lasts.

use super::drivers::{Driver, PAUSE};
use super::{dispatch, schedules, timers};
use flotilla_engine::{BeginTerm, Body};

/// Does the leader's work whenever this node is the leader.
pub(super) async fn run_terms(driver: Driver) {
    let mut leadership = driver.replica.leadership();
    loop {
        let begun = leadership.wait_for(|now| now.is_self && now.is_ready).await;
        let Ok(term) = begun.map(|now| now.term) else {
            return;
        };
        driver.hub.begin_term(term);
        let ended = leadership.wait_for(|now| !now.is_self || now.term != term);
        tokio::select! {
            () = lead(&driver, term) => {}
            _ = ended => {}
        }
        driver.hub.end_term();
    }
}

async fn lead(driver: &Driver, term: u64) {
    let begin = || Body::BeginTerm(BeginTerm { term });
    while driver.submit(begin()).await.is_none() {
        tokio::time::sleep(PAUSE).await;
    }
    tokio::join!(
        timers::drive(driver),
        dispatch::drive(driver),
        schedules::drive(driver),
    );
}
