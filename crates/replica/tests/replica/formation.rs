//! First starts, and nodes that must not take part.

use crate::cluster::{Cluster, LONG, register, submit};
use flotilla_engine::NodeId;
use flotilla_replica::{
    ClusterChange, Config, Environment, FatalError, FormError, Formation, FormedCluster, Replica,
    StartError, StorageError, Tuning,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

async fn refused(cluster: &Cluster, id: u64) -> StartError {
    Replica::start(cluster.config(id), Environment::default())
        .await
        .err()
        .expect("the start is refused")
}

/// Waits until a node says that it waits for something whose description contains `text`.
async fn waits_for(cluster: &Cluster, id: u64, text: &str) {
    let waiting = async {
        while !cluster
            .node(id)
            .awaited()
            .is_some_and(|awaited| awaited.contains(text))
        {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let waited = tokio::time::timeout(LONG, waiting).await;
    waited.unwrap_or_else(|_| panic!("{:?}", cluster.node(id).awaited()));
}

#[tokio::test]
async fn first_members_form_their_cluster_in_whatever_order_they_start() {
    let mut cluster = Cluster::new(3, Tuning::default());
    for id in [3, 1, 2] {
        cluster.start(id).await;
    }
    let formed = cluster.form(2).await;
    assert!(formed.is_new);
    cluster.leader().await;
    for id in 1..=3 {
        submit(cluster.node(id), register(&format!("action-{id}")))
            .await
            .unwrap()
            .unwrap();
        let again = cluster.form(id).await;
        let expected = FormedCluster {
            is_new: false,
            ..formed.clone()
        };
        assert_eq!(again, expected);
    }
}

#[tokio::test]
async fn no_cluster_is_formed_before_every_first_member_is_up() {
    let mut cluster = Cluster::new(3, Tuning::default());
    cluster.start(1).await;
    cluster.start(2).await;
    let deadline = tokio::time::Instant::now() + Duration::from_millis(700);
    let node = cluster.node(2);
    let waiting = node.form(deadline).await;
    let is_said =
        matches!(&waiting, Err(FormError::Waiting(awaited)) if awaited.contains("node 3 at"));
    assert!(is_said, "{waiting:?}");
    assert!(
        node.submit(register("pack").by_anyone(), deadline)
            .await
            .is_err()
    );
    assert_eq!(node.status().await.cluster_id, None);
    // The request remains in force, also at a node that starts later.
    cluster.stop(1).await;
    cluster.start(1).await;
    cluster.start(3).await;
    cluster.leader().await;
}

#[tokio::test]
async fn first_members_that_disagree_about_their_cluster_form_none() {
    let mut cluster = Cluster::new(2, Tuning::default());
    cluster.set_formation_terms(1, "access closed");
    cluster.set_formation_terms(2, "access open");
    cluster.start(1).await;
    cluster.start(2).await;
    let deadline = tokio::time::Instant::now() + Duration::from_millis(700);
    let waiting = cluster.node(1).form(deadline).await;
    let expected = "this node has `access closed`, but node 2 has `access open`";
    let is_said = matches!(&waiting, Err(FormError::Waiting(text)) if text.contains(expected));
    assert!(is_said, "{waiting:?}");
    cluster.stop(2).await;
    cluster.set_formation_terms(2, "access closed");
    cluster.start(2).await;
    cluster.leader().await;
}

#[tokio::test]
async fn first_members_that_have_all_lost_their_data_form_no_cluster_unasked() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    let before = cluster.form(1).await;
    for id in cluster.ids() {
        cluster.stop(id).await;
        let lost = cluster.data_directory(id);
        fs::rename(&lost, lost.with_extension("lost")).unwrap();
    }
    for id in 1..=3 {
        cluster.start(id).await;
    }
    for id in 1..=3 {
        waits_for(&cluster, id, "`flo cluster form`").await;
        assert!(!cluster.node(id).is_member());
    }
    let after = cluster.form(3).await;
    assert!(after.is_new);
    assert_ne!(after.cluster_id, before.cluster_id);
    cluster.leader().await;
}

#[tokio::test]
async fn a_node_that_joins_forms_no_cluster() {
    let mut cluster = Cluster::new(1, Tuning::default());
    cluster.join(2).await;
    let formed = cluster.node(2).form(tokio::time::Instant::now() + LONG);
    assert_eq!(formed.await, Err(FormError::NotFirstMember));
}

#[tokio::test]
async fn a_member_that_lost_its_directory_is_refused_with_the_hint_to_join_again() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    cluster.stop(1).await;
    let lost = cluster.data_directory(1);
    fs::rename(&lost, lost.with_extension("lost")).unwrap();
    let error = refused(&cluster, 1).await;
    assert!(matches!(error, StartError::WipedMember { .. }), "{error}");
    assert!(error.hint().contains("--join"), "{}", error.hint());
    // What the refused start left behind does not make it a member either.
    let error = refused(&cluster, 1).await;
    assert!(matches!(error, StartError::WipedMember { .. }), "{error}");
}

#[tokio::test]
async fn a_directory_that_a_refused_start_has_left_is_as_good_as_new_for_another_node() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    cluster.stop(2).await;
    let directory = cluster.data_directory(2);
    fs::rename(&directory, directory.with_extension("lost")).unwrap();
    let error = refused(&cluster, 2).await;
    assert!(matches!(error, StartError::WipedMember { .. }), "{error}");

    let config = Config {
        data_directory: directory,
        ..cluster.joining_config(4)
    };
    let peer_address = config.peer_listen.to_string();
    let joined = Replica::start(config, Environment::default())
        .await
        .unwrap();
    let node_id = NodeId(4);
    let add = ClusterChange::AddLearner {
        node_id,
        peer_address,
    };
    assert!(cluster.change(1, add).await.unwrap());
    let mut readable = joined.readable();
    let caught_up = tokio::time::timeout(LONG, readable.wait_for(|is| *is)).await;
    caught_up.expect("in time").expect("a running node");
    joined.shutdown().await;
    drop((readable, joined));
    // From now on it belongs to that node.
    let error = refused(&cluster, 2).await;
    assert!(matches!(error, StartError::OtherNode { .. }), "{error}");
}

#[tokio::test]
async fn a_wiped_member_that_starts_first_is_refused_once_a_peer_is_up() {
    let mut cluster = Cluster::started(3, Tuning::default()).await;
    for id in cluster.ids() {
        cluster.stop(id).await;
    }
    let lost = cluster.data_directory(1);
    fs::rename(&lost, lost.with_extension("lost")).unwrap();
    cluster.start(1).await;
    cluster.start(2).await;
    let mut fatal = cluster.node(1).fatal();
    let found = tokio::time::timeout(LONG, fatal.wait_for(Option::is_some)).await;
    let found = found.expect("in time").unwrap().clone().unwrap();
    let is_wiped = matches!(*found, FatalError::Refused(StartError::WipedMember { .. }));
    assert!(is_wiped, "{found}");
}

#[tokio::test]
async fn a_stranger_with_an_empty_directory_is_refused() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let mut stranger = Cluster::new(2, Tuning::default());
    let mut config = stranger.taken_config(2);
    let Formation::Found { peers } = &mut config.formation else {
        panic!("a first member")
    };
    peers.insert(NodeId(1), cluster.config(1).peer_listen.to_string());
    let error = Replica::start(config, Environment::default())
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StartError::NodeNotMember { .. }), "{error}");
    assert!(error.hint().contains("--join"), "{}", error.hint());
}

#[tokio::test]
async fn a_directory_of_another_node_or_cluster_is_refused() {
    let mut cluster = Cluster::started(2, Tuning::default()).await;
    cluster.stop(1).await;
    cluster.stop(2).await;
    let mut borrowed = cluster.config(1);
    borrowed.data_directory = cluster.data_directory(2);
    let error = Replica::start(borrowed, Environment::default())
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StartError::OtherNode { .. }), "{error}");

    let other = Cluster::started(2, Tuning::default()).await;
    let mut mistaken = cluster.config(1);
    let Formation::Found { peers } = &mut mistaken.formation else {
        panic!("a first member")
    };
    peers.insert(NodeId(2), other.config(2).peer_listen.to_string());
    let error = Replica::start(mistaken, Environment::default())
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StartError::OtherCluster { .. }), "{error}");
}

#[tokio::test]
async fn a_directory_in_use_is_refused() {
    let cluster = Cluster::started(1, Tuning::default()).await;
    let mut config = cluster.config(1);
    config.peer_listen.set_port(0);
    let error = Replica::start(config, Environment::default())
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StartError::InUse(_)), "{error}");
}

#[tokio::test]
async fn a_lost_log_or_state_is_refused_with_what_to_do() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    submit(cluster.node(1), register("pack"))
        .await
        .unwrap()
        .unwrap();
    cluster.stop(1).await;
    fs::rename(
        cluster.data_directory(1).join("log"),
        cluster.data_directory(1).join("lost"),
    )
    .unwrap();
    let error = refused(&cluster, 1).await;
    assert!(matches!(error, StartError::Mixed(_)), "{error}");
    assert!(error.hint().contains("--join"), "{}", error.hint());
}

#[tokio::test]
async fn a_node_that_is_not_in_its_own_list_of_peers_is_refused() {
    let cluster = Cluster::new(2, Tuning::default());
    let mut config = cluster.config(1);
    config.node_id = NodeId(9);
    let error = Replica::start(config, Environment::default())
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StartError::NotListed(NodeId(9))), "{error}");
}

#[tokio::test]
async fn a_later_node_joins_with_an_id_of_its_own_and_not_with_a_used_one() {
    let cluster = Cluster::started(2, Tuning::default()).await;
    let mut later = Cluster::new(3, Tuning::default());
    let seeds = vec![cluster.config(1).peer_listen.to_string()];
    let formation = Formation::Join { seeds };
    let mut config = later.taken_config(2);
    config.formation = formation.clone();
    let error = Replica::start(config, Environment::default())
        .await
        .err()
        .unwrap();
    assert!(matches!(error, StartError::WipedMember { .. }), "{error}");
    let mut config = later.taken_config(3);
    config.formation = formation;
    let joined = Replica::start(config, Environment::default())
        .await
        .unwrap();
    assert!(joined.fatal().borrow().is_none());
    joined.shutdown().await;
}

/// Alters a byte in the middle of the log's largest file.
fn corrupt_log(log: &Path) {
    let files = fs::read_dir(log)
        .expect("a log")
        .map(|entry| entry.expect("a log").path());
    let is_data = |path: &PathBuf| {
        path.extension()
            .is_some_and(|extension| extension == "log" || extension == "sst")
    };
    let data = files
        .filter(is_data)
        .max_by_key(|path| fs::metadata(path).expect("a log").len())
        .expect("a log");
    let mut bytes = fs::read(&data).expect("a log");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&data, bytes).expect("a log");
}

#[tokio::test]
async fn a_corrupt_log_record_is_refused_with_what_to_do() {
    let mut cluster = Cluster::started(1, Tuning::default()).await;
    for number in 0..50 {
        submit(cluster.node(1), register(&format!("action-{number}")))
            .await
            .unwrap()
            .unwrap();
    }
    cluster.stop(1).await;
    corrupt_log(&cluster.data_directory(1).join("log"));
    let error = refused(&cluster, 1).await;
    assert!(
        matches!(
            error,
            StartError::Log { .. }
                | StartError::Storage {
                    part: "log",
                    error: StorageError::Corrupt(_),
                    ..
                }
        ),
        "{error}"
    );
    assert!(
        error.hint().contains("--join") && error.hint().contains("backup"),
        "{}",
        error.hint()
    );
}
