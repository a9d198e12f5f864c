//! Queues of ready tasks under many label sets: what a look costs, and that it finds everything (A3).

use crate::replica::Replica;
use crate::samples;
use flotilla_engine::ids::{ActionName, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::limits::LABEL_QUEUES_VISITED_MAX;
use flotilla_engine::tables::{ActionKind, WorkerKind};
use flotilla_engine::{
    AssignTasks, Body, Command, InvokeAction, Offer, RegisterAction, RegisterWorker, Reply, view,
};
use std::collections::BTreeMap;

/// A replica with an action and a worker that has the label `gpu=yes`.
fn replica() -> Replica {
    let mut replica = Replica::new();
    replica.ask(register()).expect("accepted");
    replica.ask(worker()).expect("accepted");
    replica
}

fn invoke(replica: &mut Replica, labels: BTreeMap<String, String>) {
    let invoke = InvokeAction {
        name: samples::action(),
        input: Json::null(),
        priority: 10,
        delay_ms: 0,
        labels,
        idempotency_key: None,
    };
    let invoked = replica.ask(Body::InvokeAction(invoke));
    invoked.expect("accepted");
}

/// Lets the worker's offer take what it may.
fn assign(replica: &mut Replica) -> Reply {
    let action = samples::action();
    let assign = Body::AssignTasks(AssignTasks { action });
    let assigned = replica.apply(vec![offer()], Command::new(samples::namespace(), assign));
    assigned.expect("accepted")
}

fn has_ready_for(replica: &Replica, labels: &BTreeMap<String, String>) -> bool {
    let (namespace, action) = (samples::namespace(), samples::action());
    let found = view::has_ready_for(&replica.store, &namespace, &action, [labels]);
    found.expect("memory does not fail")
}

fn register() -> Body {
    Body::RegisterAction(Box::new(RegisterAction {
        name: samples::action(),
        kind: ActionKind::User,
        module: None,
        timeout_ms: 30_000,
        max_retries: 0,
        retry_delay_ms: 0,
        description: None,
        is_only_if_missing: false,
    }))
}

fn worker() -> Body {
    Body::RegisterWorker(Box::new(RegisterWorker {
        worker_id: WorkerId::new("w").expect("an id"),
        incarnation: 1,
        kind: WorkerKind::Action,
        max_concurrency: 1,
        processes: Vec::new(),
        labels: gpu(),
        metadata: None,
        machine_id: None,
        node: None,
    }))
}

fn offer() -> Offer {
    Offer {
        namespace: samples::namespace(),
        worker: WorkerId::new("w").expect("an id"),
        poll: 1,
        actions: vec![ActionName::new("other").expect("a name"), samples::action()],
        labels: gpu(),
        slots: 1,
    }
}

fn gpu() -> BTreeMap<String, String> {
    samples::labels()
}

fn customer(number: usize) -> BTreeMap<String, String> {
    BTreeMap::from([("customer".to_owned(), number.to_string())])
}

fn assigned(count: u32, is_fitting_left: bool) -> Reply {
    Reply::TasksAssigned {
        count,
        offers_count: 1,
        is_fitting_left,
    }
}

#[test]
fn ten_thousand_tasks_that_nobody_fits_cost_an_assignment_one_row() {
    let mut replica = replica();
    for _ in 0..10_000 {
        invoke(&mut replica, customer(1));
    }
    assert!(!has_ready_for(&replica, &gpu()) && has_ready_for(&replica, &customer(1)));
    assert_eq!(assign(&mut replica), assigned(0, false));
    assert_eq!(replica.rows, 1);
    invoke(&mut replica, gpu());
    assert!(has_ready_for(&replica, &gpu()));
    assert_eq!(assign(&mut replica), assigned(1, false));
    assert!(replica.rows <= 3, "{} rows", replica.rows);
}

#[test]
fn a_look_at_more_label_sets_than_it_takes_in_is_bounded_and_finds_each_in_time() {
    let mut replica = replica();
    for number in 0..4 * LABEL_QUEUES_VISITED_MAX {
        invoke(&mut replica, customer(number));
    }
    invoke(&mut replica, gpu());
    let mut looks = 1;
    // As long as some queues are not looked at, the reply is a reason to ask again.
    while assign(&mut replica) == assigned(0, true) {
        let rows_max = LABEL_QUEUES_VISITED_MAX + 2;
        assert!(replica.rows <= rows_max, "{} rows", replica.rows);
        looks += 1;
    }
    assert!(looks < 100, "found after {looks} looks");
}
