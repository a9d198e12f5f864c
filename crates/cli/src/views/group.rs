//! A consumer group.

use super::{name, service};
use crate::output::Row;
use flotilla_client::v1;
use serde::Serialize;

/// A consumer group.
#[derive(Debug, Serialize)]
pub(crate) struct GroupView {
    stream: String,
    group: String,
    mode: String,
    state: &'static str,
    ack_timeout_ms: u64,
    max_deliveries: u32,
    consumer_count: u32,
    consumers: Vec<ConsumerView>,
    pending_count: u64,
    lag: u64,
    acked_count: u64,
    dead_letter_count: u64,
    lost_count: u64,
    created_at_ms: u64,
}

/// A consumer of a group; absent in lists.
#[derive(Debug, Serialize)]
struct ConsumerView {
    name: String,
    joined_at_ms: u64,
    last_heartbeat_at_ms: u64,
}

impl From<v1::GroupInfo> for GroupView {
    fn from(group: v1::GroupInfo) -> Self {
        let consumers = group.consumers.iter().map(|consumer| ConsumerView {
            name: consumer.name.clone(),
            joined_at_ms: consumer.joined_at_ms,
            last_heartbeat_at_ms: consumer.last_heartbeat_at_ms,
        });
        Self {
            mode: name(group.mode()),
            state: service(group.quarantined),
            consumers: consumers.collect(),
            stream: group.stream,
            group: group.group,
            ack_timeout_ms: group.ack_timeout_ms,
            max_deliveries: group.max_deliveries,
            consumer_count: group.consumer_count,
            pending_count: group.pending_count,
            lag: group.lag,
            acked_count: group.acked_count,
            dead_letter_count: group.dead_letter_count,
            lost_count: group.lost_count,
            created_at_ms: group.created_at_ms,
        }
    }
}

impl Row for GroupView {
    const HEADINGS: &'static [&'static str] = &[
        "GROUP",
        "MODE",
        "CONSUMERS",
        "LAG",
        "PENDING",
        "ACKED",
        "DEAD",
        "STATE",
    ];

    fn cells(&self) -> Vec<String> {
        vec![
            self.group.clone(),
            self.mode.clone(),
            self.consumer_count.to_string(),
            self.lag.to_string(),
            self.pending_count.to_string(),
            self.acked_count.to_string(),
            self.dead_letter_count.to_string(),
            self.state.to_owned(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_group_has_the_published_fields() {
        let view = GroupView::from(v1::GroupInfo {
            stream: "orders".to_owned(),
            group: "billing".to_owned(),
            mode: v1::GroupMode::KeyShared.into(),
            consumers: vec![v1::GroupConsumer {
                name: "host-1".to_owned(),
                joined_at_ms: 5,
                last_heartbeat_at_ms: 6,
            }],
            ..v1::GroupInfo::default()
        });
        expect![[r#"{"stream":"orders","group":"billing","mode":"key_shared","state":"active","ack_timeout_ms":0,"max_deliveries":0,"consumer_count":0,"consumers":[{"name":"host-1","joined_at_ms":5,"last_heartbeat_at_ms":6}],"pending_count":0,"lag":0,"acked_count":0,"dead_letter_count":0,"lost_count":0,"created_at_ms":0}"#]]
            .assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
