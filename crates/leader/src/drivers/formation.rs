//! Completes the formation of a cluster: sets the access mode (X2) and creates the namespace `default` (A41).
//!
//! The replica forms the cluster without interpreting commands, so this part is left to the first leader. Nodes take no
//! callers before the mode is set. No other command creates the namespace by itself: those of the leader act in none.

use super::Driver;
use super::backoff::Backoff;
use flotilla_engine::ids::Namespace;
use flotilla_engine::{Command, CreateNamespace, view};
use flotilla_replica::HOME_GROUP_ID;

/// Sets the mode and creates `default`, unless they exist. Only the home group has both from the beginning.
pub(crate) async fn complete_formation(driver: &Driver) {
    if driver.context.replica.group_id() != HOME_GROUP_ID {
        return;
    }
    initialize_access(driver).await;
    create_default_namespace(driver).await;
}

/// Proposes the access mode. The engine ignores it if the cluster has one.
async fn initialize_access(driver: &Driver) {
    let Some(access) = &driver.context.initial_access else {
        return;
    };
    let mut backoff = Backoff::default();
    while driver.read(view::access).await.is_none() {
        if let Err(error) = driver.submit(Command::of_cluster(access.clone())).await {
            tracing::debug!(%error, "the access mode was not set yet");
            backoff.wait().await;
        }
    }
}

/// Creates `default`. It cannot be deleted, so it is missing only in a new cluster.
async fn create_default_namespace(driver: &Driver) {
    let default = Namespace::default_namespace();
    let mut backoff = Backoff::default();
    while driver
        .read(|reader| view::namespace(reader, &default))
        .await
        .is_none()
    {
        let create = Command::new(default.clone(), CreateNamespace::default());
        if let Err(error) = driver.submit(create).await {
            tracing::debug!(%error, "the namespace `default` was not created yet");
            backoff.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StillNode;
    use flotilla_engine::{AccessMode, BeginTerm};

    fn has_default(node: &StillNode) -> bool {
        let default = Namespace::default_namespace();
        node.read(|reader| view::namespace(reader, &default))
            .is_some()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_first_leader_creates_the_default_namespace_and_nothing_else_does() {
        let node = StillNode::start().await;
        let driver = node.driver();
        let begin = Command::of_cluster(BeginTerm { term: 1 });
        driver.submit(begin).await.unwrap();
        assert!(!has_default(&node), "a term belongs to no namespace");
        complete_formation(&driver).await;
        assert!(has_default(&node));
        let access = node.read(view::access).expect("the mode is set");
        assert_eq!((access.mode, access.revision), (AccessMode::Open, 1));
        // Of a later leader, it finds what is there.
        complete_formation(&driver).await;
        assert_eq!(node.read(view::access), Some(access));
    }
}
