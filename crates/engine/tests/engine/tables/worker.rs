//! Rows of workers.

use super::{Row, row};
use crate::samples;
use flotilla_engine::NodeId;
use flotilla_engine::ids::{ActionRunNumber, Identity, WorkerNumber};
use flotilla_engine::rows::{
    ActionRunSet, GoneWorkerRecord, GoneWorkers, HeldTasks, LeaseBlock, LeasePlace, LeaseWatch,
    ProcessRecord, SilentWorkers, WorkerActivities, WorkerActivityRecord, WorkerCounts,
    WorkerLeases, WorkerNumbers, WorkerOwner, WorkerProcesses, WorkerRecord, WorkerStatus,
    WorkerType, Workers,
};

fn record() -> WorkerRecord {
    WorkerRecord {
        incarnation: 5,
        replaced: vec![4, 3],
        kind: WorkerType::Stream,
        max_concurrency: 10,
        processes: samples::processes(),
        labels: samples::labels(),
        metadata: Some(samples::json()),
        machine_id: Some("host".to_owned()),
        node: Some(NodeId(2)),
        owner: WorkerOwner::Identity(Identity::new("user:ana").expect("an identity")),
        registered_at_ms: 1_000,
    }
}

pub(super) fn rows() -> Vec<Row> {
    let worker = || (samples::namespace(), samples::worker());
    let place = |expires_at_ms, task| LeasePlace {
        expires_at_ms,
        task: ActionRunNumber(task),
    };
    let process = ProcessRecord {
        run_count: 5,
        fail_count: 1,
        last_run_at_ms: Some(2_000),
    };
    vec![
        row::<Workers>(worker(), record()),
        row::<WorkerActivities>(
            worker(),
            WorkerActivityRecord {
                number: WorkerNumber(2),
                status: WorkerStatus::UnhealthyDraining,
                load: 3,
                last_heartbeat_at_ms: 2_000,
                silence_due_ms: Some(92_000),
                leases_count: 1,
                lease_watch: LeaseWatch {
                    ends_from_ms: 33_000,
                    begun_count: 6,
                    due_ms: Some(31_000),
                },
                tasks_completed: 5,
                tasks_failed: 1,
            },
        ),
        row::<WorkerNumbers>(WorkerNumber(2), worker()),
        row::<WorkerCounts>(samples::namespace(), 2),
        row::<SilentWorkers>((samples::namespace(), 2_000, samples::worker()), ()),
        row::<WorkerLeases>(
            (WorkerNumber(2), LeaseBlock::of(place(33_000, 9))),
            ActionRunSet::of(ActionRunNumber(9)),
        ),
        row::<WorkerProcesses>(
            (
                samples::namespace(),
                samples::worker(),
                samples::processes().remove(1),
            ),
            process,
        ),
        row::<GoneWorkers>(
            WorkerNumber(1),
            GoneWorkerRecord {
                namespace: samples::namespace(),
                worker: samples::worker(),
                held: HeldTasks::Lost,
                next: place(34_000, 8),
                due_ms: 2_000,
            },
        ),
    ]
}
