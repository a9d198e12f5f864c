//! The first members of a cluster, as the configuration lists them.

use super::ConfigInvalid;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

/// A first member of the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its node id.
    pub node_id: u64,
    /// Its peer address, `host:port`.
    pub address: String,
}

/// Deserializes peers from either form: a list of tables, or the text `1=HOST:PORT,2=HOST:PORT`.
pub(super) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Peer>, D::Error> {
    deserializer.deserialize_any(PeersVisitor)
}

/// Deserializes names from either form: a list, or a text with commas.
pub(super) fn names<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "expected names as HOST,HOST or as a list of hosts"
    )]
    enum Form {
        Text(String),
        List(Vec<String>),
    }
    Ok(match Form::deserialize(deserializer)? {
        Form::Text(text) => {
            let names = text.split(',').map(str::trim);
            let names = names.filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        }
        Form::List(names) => names,
    })
}

impl std::str::FromStr for Peer {
    type Err = ConfigInvalid;

    /// Parses `1=HOST:PORT`.
    fn from_str(text: &str) -> Result<Self, ConfigInvalid> {
        let invalid = || ConfigInvalid::PeerMalformed(text.to_owned());
        let (node_id, address) = text.trim().split_once('=').ok_or_else(invalid)?;
        let node_id = node_id.trim().parse().map_err(|_| invalid())?;
        let address = address.trim().to_owned();
        Ok(Self { node_id, address })
    }
}

struct PeersVisitor;

impl<'de> Visitor<'de> for PeersVisitor {
    type Value = Vec<Peer>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("peers as 1=HOST:PORT,2=HOST:PORT or as a list of node_id and address")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<Peer>, E> {
        if text.trim().is_empty() {
            return Ok(Vec::new());
        }
        text.split(',')
            .map(|peer| peer.parse().map_err(E::custom))
            .collect()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Peer>, A::Error> {
        let mut peers = Vec::new();
        while let Some(Item(peer)) = items.next_element()? {
            peers.push(peer);
        }
        Ok(peers)
    }
}

/// One peer in either form.
struct Item(Peer);

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(
            untagged,
            expecting = "expected a peer as \"ID=HOST:PORT\" or as a table of node_id and address"
        )]
        enum Form {
            Text(String),
            Table(Peer),
        }
        match Form::deserialize(deserializer)? {
            Form::Text(text) => text.parse().map(Item).map_err(D::Error::custom),
            Form::Table(peer) => Ok(Item(peer)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerConfig;
    use serde_json::json;

    fn parse(peers: serde_json::Value) -> Result<Vec<Peer>, serde_json::Error> {
        serde_json::from_value(json!({"peers": peers})).map(|config: ServerConfig| config.peers)
    }

    #[test]
    fn peers_are_read_from_text_and_from_tables() {
        let expected = [(1, "a:9001"), (2, "b:9001")].map(|(node_id, address)| Peer {
            node_id,
            address: address.to_owned(),
        });
        let table =
            json!([{"node_id": 1, "address": "a:9001"}, {"node_id": 2, "address": "b:9001"}]);
        for peers in [
            json!("1=a:9001, 2=b:9001"),
            json!(["1=a:9001", "2=b:9001"]),
            table,
        ] {
            assert_eq!(parse(peers).unwrap(), expected);
        }
        assert_eq!(parse(json!("")).unwrap(), []);
    }

    #[test]
    fn names_are_read_from_text_and_from_a_list() {
        for names in [json!("a, b"), json!(["a", "b"])] {
            let config: ServerConfig =
                serde_json::from_value(json!({"peer_names": names})).expect("both forms are known");
            assert_eq!(config.peer_names, ["a", "b"]);
        }
        assert!(serde_json::from_value::<ServerConfig>(json!({"peer_names": 1})).is_err());
    }

    #[test]
    fn other_texts_are_refused_with_the_form_that_is_expected() {
        for peers in [
            json!("a:9001"),
            json!("x=a:9001"),
            json!("1=a:1,"),
            json!(["a:9001"]),
        ] {
            let error = parse(peers).unwrap_err().to_string();
            assert!(error.contains("ID=HOST:PORT"), "{error}");
        }
        assert!(parse(json!([{"node_id": 1, "address": "a:1", "zone": "b"}])).is_err());
    }
}
