//! The output of `flo cluster status`.

use anyhow::{Result, bail};
use serde_json::Value;

use super::{Digest, Leader};
use crate::client::{list, number, text};

/// The cluster as one node sees it.
pub(super) struct Status {
    /// The leader, if there is one.
    pub(super) leader: Option<Leader>,
    /// The known digests.
    digests: Vec<Digest>,
}

impl Status {
    /// # Errors
    /// If the object does not have the published shape.
    pub(super) fn read(object: &Value) -> Result<Self> {
        let leader = match object["leader_id"].as_u64() {
            Some(node_id) => Some(Leader {
                node_id,
                term: number(object, "term")?,
            }),
            None => None,
        };
        let nodes = list(object, "nodes")?.iter();
        let digests = nodes.map(|node| &node["digest"]);
        let digests = digests.filter(|digest| !digest.is_null()).map(read_digest);
        Ok(Self {
            leader,
            digests: digests.collect::<Result<_>>()?,
        })
    }

    /// The digest of all nodes, once they have applied the same index.
    ///
    /// # Errors
    /// If two nodes have different states at the same index.
    pub(super) fn agreement(&self, nodes_count: usize) -> Result<Option<Digest>> {
        let Some(first) = self.digests.first() else {
            return Ok(None);
        };
        let mut at_first_index = 0;
        for digest in self.digests.iter().filter(|it| it.index == first.index) {
            if digest.value != first.value {
                let Digest { index, value } = digest;
                let other = &first.value;
                bail!("expected one state at index {index}, but there are {value} and {other}");
            }
            at_first_index += 1;
        }
        Ok((at_first_index == nodes_count).then(|| first.clone()))
    }
}

fn read_digest(object: &Value) -> Result<Digest> {
    Ok(Digest {
        index: number(object, "index")?,
        value: text(object, "value")?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(digests: &[(u64, &str)]) -> Status {
        let node =
            |(index, value): &(u64, &str)| json!({"digest": {"index": index, "value": value}});
        let nodes: Vec<Value> = digests.iter().map(node).collect();
        Status::read(&json!({"leader_id": 2, "term": 5, "nodes": nodes})).unwrap()
    }

    #[test]
    fn the_leader_is_read_with_its_term() {
        let leader = Leader {
            node_id: 2,
            term: 5,
        };
        assert_eq!(status(&[]).leader, Some(leader));
        let none = json!({"leader_id": null, "term": 5, "nodes": [{"digest": null}]});
        assert_eq!(Status::read(&none).unwrap().leader, None);
    }

    #[test]
    fn nodes_agree_when_all_stand_at_one_index_with_one_state() {
        let agreement = |digests: &[_]| status(digests).agreement(3).unwrap();
        let digest = Digest {
            index: 9,
            value: "aa".to_owned(),
        };
        assert_eq!(agreement(&[(9, "aa"), (9, "aa"), (9, "aa")]), Some(digest));
        assert_eq!(agreement(&[(9, "aa"), (8, "bb"), (9, "aa")]), None);
        assert_eq!(agreement(&[(9, "aa"), (9, "aa")]), None);
        assert_eq!(agreement(&[]), None);
    }

    #[test]
    fn different_states_at_one_index_are_an_error() {
        let error = status(&[(9, "aa"), (9, "bb")]).agreement(3).unwrap_err();
        assert!(error.to_string().contains("at index 9"), "{error}");
    }
}
