//! Assigns ready tasks to free slots, when the turn that readied them found no offer.

use super::drivers::{Driver, PAUSE};
use flotilla_engine::ids::Namespace;
use flotilla_engine::{AssignTasks, Body, Reply, reply, view};

/// Proposes assignments of ready tasks whenever a worker polls for their action.
pub(super) async fn drive(driver: &Driver) {
    let namespace = Namespace::default_namespace();
    loop {
        driver.hub.changed().await;
        let mut is_fruitless = false;
        for action in driver.hub.actions() {
            let has_ready = driver.read(|view| view::has_ready(view, &namespace, &action));
            if has_ready == Some(true) {
                let reply = driver.submit(Body::AssignTasks(AssignTasks { action }));
                let reply = reply.await;
                is_fruitless |= !matches!(
                    reply,
                    Some(Reply::TasksAssigned(reply::TasksAssigned {
                        count: 1..,
                        ..
                    }))
                );
            }
        }
        if is_fruitless {
            // The polls were in other entries; when they return is unknown.
            tokio::time::sleep(PAUSE).await;
            driver.hub.wake();
        }
    }
}
