//! The calls of clients while faults happen, and what must hold afterwards.

mod approvals;
mod calls;
mod compensations;
mod concurrency;
mod event_stream;
mod leases;
mod loops;
mod nodes;
mod register;
mod resumes;
mod schedules;
mod scopes;
mod session;
mod signals;
mod starts;
mod steps;
mod targets;
mod tokens;
mod triggers;
mod watch;
mod workers;

pub use nodes::{Nodes, OneNode};
pub use session::{ClientId, Session};

use crate::checker::Violation;
use crate::history::History;
use flotilla_client::ClientError;
use flotilla_tests::Flo;
use futures::future::BoxFuture;
use rand::rngs::StdRng;
use serde_json::Value;
use std::sync::Arc;

/// The calls of clients while faults happen, and what must hold afterwards.
pub trait Workload: Send + Sync {
    /// Its name in histories and on the command line.
    fn name(&self) -> &'static str;

    /// Prepares the healthy cluster: definitions, streams.
    fn prepare(&self, flo: &Flo);

    /// The number of concurrent clients.
    fn processes(&self) -> u64 {
        4
    }

    /// One or a few operations of one client, which the session records.
    fn step<'a>(&'a self, session: &'a Session, random: &'a mut StdRng) -> BoxFuture<'a, ()>;

    /// Runs beside the clients until the session stops, as workers do.
    fn assist(&self, _session: Session) -> BoxFuture<'static, ()> {
        Box::pin(async {})
    }

    /// Reads the final state from the healed cluster: what [`Workload::check`] needs.
    ///
    /// # Errors
    /// When the healed cluster does not answer.
    fn final_read<'a>(&'a self, session: &'a Session) -> BoxFuture<'a, Result<Value, ClientError>>;

    /// The violations in the history; it uses no other input.
    fn check(&self, history: &History) -> Vec<Violation>;
}

/// Every workload.
#[must_use]
pub fn all() -> Vec<Arc<dyn Workload>> {
    vec![
        Arc::new(starts::Starts::default()),
        Arc::new(signals::Signals::default()),
        Arc::new(approvals::Approvals::default()),
        Arc::new(steps::Steps::default()),
        Arc::new(loops::Loops::default()),
        Arc::new(resumes::Resumes::default()),
        Arc::new(compensations::Compensations::default()),
        Arc::new(scopes::Scopes::default()),
        Arc::new(concurrency::Concurrency::default()),
        Arc::new(targets::Targets),
        Arc::new(leases::Leases::default()),
        Arc::new(schedules::Schedules),
        Arc::new(triggers::Triggers::default()),
        Arc::new(register::Register::default()),
        Arc::new(tokens::Tokens::default()),
        Arc::new(watch::Watch::over(watch::Protocol::Grpc)),
        Arc::new(watch::Watch::over(watch::Protocol::Http)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_lists_each_workload() {
        let readme = include_str!("../../README.md");
        let (_, section) = readme.split_once("## Workloads").expect("a section");
        let (table, _) = section.split_once("\n## ").expect("a next section");
        for workload in all() {
            let row = format!("\n| `{}` |", workload.name());
            assert!(table.contains(&row), "{row}");
        }
    }
}
