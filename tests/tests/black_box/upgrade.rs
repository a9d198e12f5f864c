//! A rolling upgrade to an engine version with a second version of a record, of a command and of the encoding of
//! definitions (design rule 12, ADR 0025). This build simulates the newer release.

use flotilla_tests::{Cluster, Flo, TIMEOUT, wait_until};
use serde_json::{Value, json};

/// The environment of a node of the newer release.
const EXERCISE: &str = "FLO_EXERCISE";

const DEFINITION: &str = "kind: Workflow
name: order
version: \"1\"
start:
  waitForSignal: {type: go}
  transitions: {success: flo.Completed}
";

/// A node of the newer release marks the definitions that request it.
const MARKED: &str = "# exercise\n";

struct Upgrade {
    cluster: Cluster,
    plain: String,
    marked: String,
}

impl Upgrade {
    fn start() -> Self {
        let cluster = Cluster::start();
        let scratch = cluster.scratch();
        Self {
            plain: scratch.write("plain.yaml", DEFINITION),
            marked: scratch.write("marked.yaml", format!("{MARKED}{DEFINITION}")),
            cluster,
        }
    }

    /// Restarts a node with a mark of the newer release, or without one as the older release.
    fn restart(&mut self, id: u64, mark: Option<&str>) {
        let node = self.cluster.node_mut(id);
        let status = node.stop();
        assert!(status.success(), "{status}");
        let mark = mark.map(|mark| (EXERCISE.to_owned(), mark.into()));
        node.set_environment(mark.into_iter().collect());
        node.restart();
        self.cluster.await_health();
    }

    fn flo(&self, id: u64) -> Flo {
        self.cluster.flo_at(id)
    }

    fn create(&self, id: u64, file: &str) -> Value {
        let created = self.flo(id).json(&["workflow", "create", "-f", file]);
        json!([created["revision"], created["created"]])
    }

    /// Whether the namespace was created, or its mark has changed.
    fn create_namespace(&self, id: u64, name: &str) -> Value {
        self.flo(id).json(&["ns", "create", name])["created"].clone()
    }

    fn await_agreed(&self, version: u32) {
        wait_until("the cluster's agreement", TIMEOUT, || {
            let agreed =
                [1, 2, 3].map(|id| self.cluster.node(id).metric("flotilla_engine_version"));
            if agreed.iter().all(|agreed| *agreed == f64::from(version)) {
                return Ok(());
            }
            Err(format!("they have agreed on {agreed:?}"))
        });
    }
}

#[test]
fn second_versions_are_written_once_every_member_can_read_them() {
    let mut upgrade = Upgrade::start();
    upgrade.await_agreed(1);
    assert_eq!(upgrade.create(1, &upgrade.plain), json!([1, true]));
    assert_eq!(upgrade.create_namespace(1, "north"), json!(true));
    upgrade.restart(1, Some("7"));
    upgrade.restart(2, Some("7"));
    // One member knows only the old version, so the new nodes still write what it can read.
    assert_eq!(upgrade.create_namespace(1, "north"), json!(false));
    assert_eq!(upgrade.create(2, &upgrade.plain), json!([1, false]));
    let create = [
        "--timeout",
        "3s",
        "workflow",
        "create",
        "-f",
        &upgrade.marked,
    ];
    upgrade
        .flo(1)
        .refused(&create)
        .expect(3, "engine_version_too_low");
    upgrade.restart(3, Some("7"));
    upgrade.await_agreed(2);
    // The record of version 1 is migrated; the mark of version 2 is written and read.
    assert_eq!(upgrade.create_namespace(1, "north"), json!(true));
    assert_eq!(upgrade.create_namespace(2, "north"), json!(false));
    // The same text is the same content in both releases; with the mark it differs.
    assert_eq!(upgrade.create(3, &upgrade.plain), json!([1, false]));
    assert_eq!(upgrade.create(3, &upgrade.marked), json!([2, true]));
    assert_eq!(upgrade.create(1, &upgrade.marked), json!([2, false]));
    drop(upgrade.cluster.agreement());
    // The data survives a restart with a log that has both versions of the command.
    upgrade.restart(1, Some("7"));
    assert_eq!(upgrade.create_namespace(1, "north"), json!(false));
    upgrade.restart(2, Some("8"));
    assert_eq!(upgrade.create_namespace(2, "north"), json!(true));
    drop(upgrade.cluster.agreement());
}

#[test]
fn a_node_below_the_agreed_version_does_not_start() {
    let mut upgrade = Upgrade::start();
    for id in [1, 2, 3] {
        upgrade.restart(id, Some("7"));
    }
    upgrade.await_agreed(2);
    let node = upgrade.cluster.node_mut(3);
    node.stop();
    node.set_environment(Vec::new());
    node.restart();
    let (status, output) = node.end();
    assert!(!status.success(), "{status}");
    assert!(output.contains("engine version 2"), "{output}");
}
