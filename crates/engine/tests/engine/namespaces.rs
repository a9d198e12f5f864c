//! Deleting a namespace with many remaining rows (A41), for which a script would need thousands of names.

use crate::replica::Replica;
use crate::{invariants, samples};
use flotilla_engine::ids::{Namespace, WorkerId};
use flotilla_engine::limits::{NAMESPACES_MAX, SWEEP_ROWS_MAX};
use flotilla_engine::rows::{Namespaces, Workers};
use flotilla_engine::{
    BeginTerm, Body, Command, CommandScope, CreateNamespace, DeleteNamespace, Departure, Rejection,
    ReleaseWorker, Reply, reply,
};

fn crowd() -> Namespace {
    Namespace::new("crowd").expect("a name")
}

fn ask(replica: &mut Replica, body: Body) -> Result<Reply, Rejection> {
    replica.apply(Vec::new(), body.into_command(crowd()))
}

fn register(replica: &mut Replica, number: usize) {
    let worker = samples::plain_worker(id(number));
    ask(replica, Body::RegisterWorker(Box::new(worker))).expect("there is room");
}

/// Registers a worker that never sends a heartbeat.
fn leave_silent(replica: &mut Replica, number: usize) {
    register(replica, number);
    let release = ReleaseWorker {
        worker_id: id(number),
        incarnation: 1,
        departure: Departure::Stopped,
    };
    ask(replica, Body::ReleaseWorker(release)).expect("it is registered");
}

fn id(number: usize) -> WorkerId {
    WorkerId::new(format!("w{number}")).expect("an id")
}

fn delete(replica: &mut Replica) -> Result<Reply, Rejection> {
    ask(replica, Body::DeleteNamespace(DeleteNamespace {}))
}

fn deleted(is_found: bool, has_more: bool) -> Result<Reply, Rejection> {
    Ok(Reply::NamespaceDeleted(reply::NamespaceDeleted {
        is_found,
        has_more,
    }))
}

#[test]
fn what_goes_with_a_namespace_goes_in_bounded_pieces_and_the_namespace_last() {
    let mut replica = Replica::new();
    for number in 0..2 * SWEEP_ROWS_MAX + 500 {
        leave_silent(&mut replica, number);
    }
    for _ in 0..2 {
        assert_eq!(delete(&mut replica), deleted(true, true));
        assert!(replica.has::<Namespaces>(&crowd()));
        assert!(replica.rows <= SWEEP_ROWS_MAX + 1, "{} rows", replica.rows);
    }
    assert_eq!(delete(&mut replica), deleted(true, false));
    assert!(!replica.has::<Namespaces>(&crowd()));
    assert!(!replica.has::<Workers>(&(crowd(), id(0))));
    assert_eq!(delete(&mut replica), deleted(false, false));
    invariants::check(&replica.store);
}

#[test]
fn a_worker_that_lives_keeps_its_namespace_however_many_are_silent() {
    let mut replica = Replica::new();
    for number in 0..SWEEP_ROWS_MAX {
        leave_silent(&mut replica, number);
    }
    register(&mut replica, SWEEP_ROWS_MAX);
    assert_eq!(delete(&mut replica), deleted(true, true));
    let refused = Rejection::NamespaceNotEmpty {
        namespace: crowd(),
        left: "workers".to_owned(),
    };
    assert_eq!(delete(&mut replica), Err(refused));
    let create = Body::CreateNamespace(CreateNamespace::default());
    let known = Reply::NamespaceCreated(reply::NamespaceCreated { is_new: false });
    assert_eq!(ask(&mut replica, create), Ok(known));
    invariants::check(&replica.store);
}

#[test]
fn at_the_bound_a_write_to_an_unknown_namespace_is_refused_without_a_scan() {
    let mut replica = Replica::new();
    for number in 0..NAMESPACES_MAX {
        let name = Namespace::new(format!("n{number}")).expect("a name");
        let create = Body::CreateNamespace(CreateNamespace::default());
        replica
            .apply(Vec::new(), create.into_command(name))
            .expect("there is room");
    }
    let worker = Body::RegisterWorker(Box::new(samples::plain_worker(id(1))));
    let refused = ask(&mut replica, worker.clone());
    let is_refused = matches!(refused, Err(Rejection::LimitExceeded { .. }));
    assert!(is_refused, "{refused:?}");
    assert!(replica.rows <= 1, "{} rows", replica.rows);
    let first = Namespace::new("n0").expect("a name");
    let delete = Body::DeleteNamespace(DeleteNamespace {});
    replica
        .apply(Vec::new(), delete.into_command(first))
        .expect("it is empty");
    ask(&mut replica, worker).expect("there is room again");
    invariants::check(&replica.store);
}

#[test]
fn a_command_with_the_scope_of_another_kind_is_rejected_and_writes_nothing() {
    let mut replica = Replica::new();
    let commands = [
        (
            CommandScope::Cluster,
            Body::CreateNamespace(CreateNamespace::default()),
        ),
        (
            CommandScope::Namespace(crowd()),
            Body::BeginTerm(BeginTerm { term: 1 }),
        ),
    ];
    for (scope, body) in commands {
        let command = Command {
            request_id: None,
            scope,
            body,
        };
        let refused = replica.apply(Vec::new(), command);
        assert!(
            matches!(refused, Err(Rejection::Internal(_))),
            "{refused:?}"
        );
    }
    let cluster = replica.cluster();
    assert_eq!((cluster.namespaces_count, cluster.term), (0, 0));
    assert_eq!(cluster.panics_count, 0);
}
