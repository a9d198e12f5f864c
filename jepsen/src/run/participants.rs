//! The clients and workers of a run.

use super::Plan;
use crate::checker::Violation;
use crate::history::{Moment, Recorder};
use crate::workload::{ClientId, Nodes, Session, Workload};
use flotilla_client::Client;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long one call of a final read may take.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// The difference between the seeds of two clients.
const SEED_STEP: u64 = 0x9E37_79B9;

/// The clients and workers of a run. They are threads of this process, the nodes are not.
pub(crate) struct Participants {
    runtime: Runtime,
    nodes: Nodes,
    call_timeout: Duration,
    recorder: Arc<Recorder>,
    clients: TaskTracker,
    clients_stop: CancellationToken,
    workers: TaskTracker,
    workers_stop: CancellationToken,
}

impl Participants {
    /// Starts all of them.
    pub(crate) fn begin(plan: &Plan, nodes: Nodes, recorder: &Arc<Recorder>) -> Self {
        let participants = Self {
            runtime: Runtime::new().expect("a machine that runs a cluster has room for threads"),
            nodes,
            call_timeout: plan.pace.call_timeout,
            recorder: recorder.clone(),
            clients: TaskTracker::new(),
            clients_stop: CancellationToken::new(),
            workers: TaskTracker::new(),
            workers_stop: CancellationToken::new(),
        };
        let _inside = participants.runtime.enter();
        let mut seed = plan.seed;
        for workload in &plan.workloads {
            let session = participants.session(workload, 0, &participants.workers_stop);
            participants.workers.spawn(workload.assist(session));
            for process in 0..workload.processes() {
                seed = seed.wrapping_add(SEED_STEP);
                let session = participants.session(workload, process, &participants.clients_stop);
                let random = StdRng::seed_from_u64(seed);
                participants
                    .clients
                    .spawn(work(workload.clone(), session, random));
            }
        }
        drop(_inside);
        participants
    }

    /// The time in the history.
    pub(crate) fn now(&self) -> Moment {
        self.recorder.now()
    }

    /// Stops the clients.
    pub(crate) fn stop_clients(&self) {
        self.clients_stop.cancel();
        self.clients.close();
        self.runtime.block_on(self.clients.wait());
    }

    /// Stops the workers.
    pub(crate) fn stop_workers(&self) {
        self.workers_stop.cancel();
        self.workers.close();
        self.runtime.block_on(self.workers.wait());
    }

    /// Does the final read of each workload; one that gets no response is a violation.
    pub(crate) fn final_reads(
        &self,
        plan: &Plan,
        violations: &mut Vec<Violation>,
    ) -> BTreeMap<String, Value> {
        let mut reads = BTreeMap::new();
        for workload in &plan.workloads {
            let read = self.runtime.block_on(async {
                let mut session = self.session(workload, 0, &self.workers_stop);
                session.client = session.client.with_timeout(READ_TIMEOUT);
                workload.final_read(&session).await
            });
            let name = workload.name();
            match read {
                Ok(value) => {
                    reads.insert(name.to_owned(), value);
                }
                Err(error) => violations.push(Violation::new(format!(
                    "the healed cluster did not answer the final read of {name}: {error}"
                ))),
            }
        }
        reads
    }

    /// Calls the cluster.
    pub(crate) fn ask<T, F: Future<Output = T>>(&self, ask: impl FnOnce(Client) -> F) -> T {
        self.runtime.block_on(async {
            let client = ClientId {
                workload: "probe",
                process: 0,
            };
            let (recorder, stop) = (self.recorder.clone(), self.workers_stop.clone());
            let session = Session::new(client, &self.nodes, recorder, stop);
            ask(session.client).await
        })
    }

    /// Lets the clients work for this long.
    pub(crate) fn wait(&self, time: Duration) {
        self.runtime
            .block_on(async { tokio::time::sleep(time).await });
    }

    fn session(
        &self,
        workload: &Arc<dyn Workload>,
        process: u64,
        stop: &CancellationToken,
    ) -> Session {
        let client = ClientId {
            workload: workload.name(),
            process,
        };
        let (recorder, stop) = (self.recorder.clone(), stop.clone());
        let mut session = Session::new(client, &self.nodes, recorder, stop);
        session.client = session.client.with_timeout(self.call_timeout);
        session
    }
}

async fn work(workload: Arc<dyn Workload>, session: Session, mut random: StdRng) {
    while !session.stop.is_cancelled() {
        workload.step(&session, &mut random).await;
    }
}
