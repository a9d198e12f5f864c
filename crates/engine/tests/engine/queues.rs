//! Queues of ready tasks under many label sets: what a look costs, and that it finds everything (A3).

use crate::replica::Replica;
use crate::samples;
use flotilla_engine::ids::{ActionName, WorkerId};
use flotilla_engine::json::Json;
use flotilla_engine::limits::LABEL_QUEUES_MAX;
use flotilla_engine::{
    AssignTasks, Body, CompleteTask, InvokeAction, Offer, RegisterWorker, Rejection, RejectionCode,
    Reply, reply, view,
};
use std::collections::BTreeMap;

/// A replica with an action and a worker that has the label `gpu=yes`.
fn replica() -> Replica {
    let mut replica = Replica::new();
    let action = Body::RegisterAction(Box::new(samples::plain_action()));
    replica.ask(action).expect("accepted");
    let worker = Body::RegisterWorker(Box::new(worker()));
    replica.ask(worker).expect("accepted");
    replica
}

fn invoke(replica: &mut Replica, labels: BTreeMap<String, String>) {
    try_invoke(replica, labels).expect("accepted");
}

fn try_invoke(replica: &mut Replica, labels: BTreeMap<String, String>) -> Result<Reply, Rejection> {
    let invoke = InvokeAction {
        labels,
        ..samples::plain_invocation()
    };
    replica.ask(Body::InvokeAction(invoke))
}

/// Lets the worker's offer take what it may.
fn assign(replica: &mut Replica) -> Reply {
    let action = samples::action();
    let assign = Body::AssignTasks(AssignTasks { action });
    let assigned = replica.apply(vec![offer()], assign.into_command(samples::namespace()));
    assigned.expect("accepted")
}

/// Completes the task that the worker has.
fn complete(replica: &mut Replica) {
    let worker = WorkerId::new("w").expect("an id");
    let worker = view::worker(&replica.store, &samples::namespace(), &worker);
    let worker = worker.expect("memory does not fail").expect("registered");
    let leased = view::leased_tasks(&replica.store, &worker).expect("memory does not fail");
    let held = view::assignment(&replica.store, leased[0]).expect("memory does not fail");
    let (assignment, _) = held.expect("a leased task is assigned");
    let complete = CompleteTask {
        token: assignment.token,
        outcome: samples::outcome(),
        output: Json::null(),
        not_before: None,
        state_patch: None,
        usage: None,
    };
    let completed = replica.ask(Body::CompleteTask(complete));
    completed.expect("accepted");
}

fn has_ready_for(replica: &Replica, labels: &BTreeMap<String, String>) -> bool {
    let (namespace, action) = (samples::namespace(), samples::action());
    let found = view::has_ready_for(&replica.store, &namespace, &action, [labels]);
    found.expect("memory does not fail")
}

fn worker() -> RegisterWorker {
    RegisterWorker {
        max_concurrency: 1,
        labels: gpu(),
        ..samples::plain_worker(WorkerId::new("w").expect("an id"))
    }
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
    Reply::TasksAssigned(reply::TasksAssigned {
        count,
        is_fitting_left,
    })
}

#[test]
fn ten_thousand_tasks_without_a_fitting_worker_cost_an_assignment_no_scan() {
    let mut replica = replica();
    for _ in 0..10_000 {
        invoke(&mut replica, customer(1));
    }
    assert!(!has_ready_for(&replica, &gpu()) && has_ready_for(&replica, &customer(1)));
    assert_eq!(assign(&mut replica), assigned(0, false));
    assert_eq!(replica.rows, 0);
    invoke(&mut replica, gpu());
    assert!(has_ready_for(&replica, &gpu()));
    assert_eq!(assign(&mut replica), assigned(1, false));
    assert!(replica.rows <= 2, "{} rows", replica.rows);
}

#[test]
fn a_look_takes_in_every_label_set_and_more_are_refused_until_one_is_free() {
    let mut replica = replica();
    for number in 1..LABEL_QUEUES_MAX {
        invoke(&mut replica, customer(number));
    }
    invoke(&mut replica, gpu());
    let refused = try_invoke(&mut replica, customer(0)).expect_err("one set too many");
    assert_eq!(refused.code(), RejectionCode::LimitExceeded);
    invoke(&mut replica, customer(1));

    assert_eq!(assign(&mut replica), assigned(1, false));
    assert!(!has_ready_for(&replica, &gpu()) && has_ready_for(&replica, &customer(1)));
    // The task that was taken is still open: it may come back to its queue.
    try_invoke(&mut replica, customer(0)).expect_err("one set too many");
    complete(&mut replica);
    invoke(&mut replica, customer(0));
}
