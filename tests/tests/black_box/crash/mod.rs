//! 300 runs while nodes are killed: no acknowledged work is lost or duplicated.
//!
//! First the storm: orders are placed through all nodes, and each is paid with a signal that is sent
//! twice, while a schedule from a printed seed kills the leader, a follower or all nodes with
//! SIGKILL and restarts them. Then everything is healed, and the invariants are checked.
//! `FLOTILLA_SEED` repeats a schedule.

mod audit;
mod faults;
mod orders;
mod workers;

use crate::counter::Counter;
use crate::files::fixture;
use crate::wire;
use faults::{Fault, Kill};
use flotilla_tests::Cluster;
use orders::Orders;
use std::sync::Arc;
use workers::Workers;

const ORDERS: u64 = 300;

#[test]
fn every_run_that_was_acknowledged_completes_once_while_nodes_are_killed() {
    let seed = faults::seed();
    println!("FLOTILLA_SEED={seed}");
    let mut cluster = Cluster::start();
    let flo = cluster.flo();
    for name in ["packing.yaml", "parcel.yaml"] {
        let _ = flo.text(&["workflow", "create", "-f", &fixture(name)]);
    }
    // Only the step retries these, so that both kinds of retry are tested.
    for name in ["price-parcel", "ship-parcel"] {
        let _ = flo.text(&["action", "register", name, "--max-retries", "0"]);
    }
    let retries = ["--max-retries", "9", "--retry-delay-ms", "20"];
    let _ = flo.text(&[&["action", "register", "pack-parcel"], &retries[..]].concat());

    let runtime = wire::runtime();
    let workers = runtime.block_on(Workers::start(&cluster.endpoints()));
    let orders = Arc::new(Orders::new(cluster.endpoints()));
    let counter = Arc::new(Counter::default());
    let placing = runtime.spawn(orders.clone().place_all(ORDERS, counter.clone()));
    for fault in faults::schedule(seed, ORDERS) {
        strike(&mut cluster, &counter, &fault);
    }
    let placed = runtime.block_on(placing).expect("every order is placed");
    // Once more, while runs are open for which no client waits.
    strike(&mut cluster, &counter, &Fault::last(ORDERS));

    cluster.await_health();
    runtime.block_on(async {
        orders.await_completion(ORDERS).await;
        orders.expect_once(&placed).await;
        audit::expect_sound(&orders.client(0), &placed).await;
    });
    assert!(workers.failures() > 0, "expected handlers to fail at first");
    runtime.block_on(workers.stop());
    let digest = cluster.agreement();
    println!("all nodes have digest {} at {}", digest.value, digest.index);
}

fn strike(cluster: &mut Cluster, counter: &Counter, fault: &Fault) {
    counter.await_count(fault.after_orders);
    let victims = match fault.kill {
        Kill::Leader => vec![cluster.leader()],
        Kill::Follower => cluster.followers().into_iter().take(1).collect(),
        Kill::All => cluster.ids(),
    };
    println!(
        "after {} orders: {:?} {victims:?}",
        counter.count(),
        fault.kill
    );
    for &victim in &victims {
        cluster.kill(victim);
    }
    counter.await_count(fault.back_after_orders);
    for &victim in &victims {
        cluster.restart(victim);
    }
}
