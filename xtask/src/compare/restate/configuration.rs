//! The configuration of Restate's nodes. Everything that is not set here is Restate's default, also that logs are
//! synced to disk before they are acknowledged (`rocksdb-disable-wal-fsync = false`).

use std::fmt::Write;

use crate::cluster::address;

/// How many ports a node needs.
pub(super) const PORTS: usize = 3;

/// The ports of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// For the other nodes.
    fabric: u16,
    /// For clients.
    pub(super) ingress: u16,
    /// For administration.
    pub(super) admin: u16,
}

impl Node {
    /// The configuration with these ports.
    pub(super) fn at(ports: &[u16]) -> Self {
        Self {
            fabric: ports[0],
            ingress: ports[1],
            admin: ports[2],
        }
    }
}

/// The configuration of each node, as TOML. Three nodes keep each record twice and agree on metadata; the first
/// one provisions the cluster.
pub(super) fn of(nodes: &[Node], partitions: Option<u16>) -> Vec<String> {
    let texts = nodes.iter().enumerate();
    let texts = texts.map(|(number, _)| one(nodes, number, partitions));
    texts.collect()
}

fn one(nodes: &[Node], number: usize, partitions: Option<u16>) -> String {
    let Node {
        fabric,
        ingress,
        admin,
    } = nodes[number];
    let url = |port: u16| format!("http://{}", address(port));
    let metadata: Vec<String> = nodes.iter().map(|node| url(node.fabric)).collect();
    let replication = if nodes.len() > 1 { 2 } else { 1 };
    let mut text = format!(
        "cluster-name = \"bench\"\n\
         node-name = \"node{name}\"\n\
         base-dir = \"node{name}\"\n\
         auto-provision = {is_first}\n\
         default-replication = {replication}\n\
         disable-telemetry = true\n\
         listen-mode = \"tcp\"\n\
         bind-address = \"{fabric_address}\"\n\
         advertised-address = \"{fabric_url}\"\n",
        name = number + 1,
        is_first = number == 0,
        fabric_address = address(fabric),
        fabric_url = url(fabric),
    );
    if let Some(partitions) = partitions {
        writeln!(text, "default-num-partitions = {partitions}").expect("a string takes any text");
    }
    let sections = format!(
        "[metadata-client]\n\
         type = \"replicated\"\n\
         addresses = {metadata:?}\n\
         [ingress]\n\
         bind-address = \"{}\"\n\
         [admin]\n\
         bind-address = \"{}\"\n",
        address(ingress),
        address(admin),
    );
    text + &sections
}

#[cfg(test)]
mod tests {
    use toml::{Table, Value};

    use super::*;

    fn read(nodes: &[Node], partitions: Option<u16>) -> Vec<Table> {
        let texts = of(nodes, partitions);
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn nodes() -> [Node; 3] {
        [[1, 2, 3], [4, 5, 6], [7, 8, 9]].map(|ports| Node::at(&ports))
    }

    #[test]
    fn three_nodes_know_each_other_and_keep_each_record_twice() {
        let tables = read(&nodes(), Some(4));
        let first: Vec<_> = tables
            .iter()
            .map(|table| &table["auto-provision"])
            .collect();
        assert_eq!(
            first,
            [&true, &false, &false]
                .map(|is| Value::from(*is))
                .each_ref()
        );
        for table in &tables {
            assert_eq!(table["default-replication"].as_integer(), Some(2));
            assert_eq!(table["default-num-partitions"].as_integer(), Some(4));
            assert_eq!(
                table["metadata-client"]["addresses"]
                    .as_array()
                    .unwrap()
                    .len(),
                3
            );
        }
        assert_eq!(
            tables[2]["ingress"]["bind-address"].as_str(),
            Some("127.0.0.1:8")
        );
        assert_eq!(
            tables[2]["admin"]["bind-address"].as_str(),
            Some("127.0.0.1:9")
        );
        assert_eq!(
            tables[2]["advertised-address"].as_str(),
            Some("http://127.0.0.1:7")
        );
    }

    #[test]
    fn one_node_keeps_its_default_of_partitions_unless_set() {
        let table = &read(&nodes()[..1], None)[0];
        assert_eq!(table["default-replication"].as_integer(), Some(1));
        assert!(!table.contains_key("default-num-partitions"));
    }

    #[test]
    fn nothing_is_made_less_durable() {
        for text in of(&nodes(), Some(4)) {
            assert!(!text.contains("fsync") && !text.contains("wal"), "{text}");
        }
    }
}
