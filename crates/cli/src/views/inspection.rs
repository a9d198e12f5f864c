//! What waits on a node.

use super::bytes;
use crate::output::{Row, table};
use flotilla_client::v1;
use serde::Serialize;

/// What waits on a node.
#[derive(Debug, Serialize)]
pub(crate) struct InspectionView {
    node_id: u64,
    leading: bool,
    drained: bool,
    queue: Vec<QueueView>,
    memory: Vec<MemoryView>,
    requests: Vec<RequestsView>,
    watchers: Vec<WatchersView>,
    polls: Vec<PollsView>,
    installs: Vec<InstallView>,
    followers: Vec<FollowerView>,
    connections: Vec<ConnectionsView>,
    embedded_slots: SlotsView,
    outgoing_snapshot_count: u32,
    omitted_count: u64,
    calls_without_token: Vec<CallsView>,
    calls_counted_ms: u64,
    requires_token: bool,
    keyring: String,
}

#[derive(Debug, Serialize)]
struct CallsView {
    address: String,
    subject: String,
    permission: String,
    namespace: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct QueueView {
    namespace: String,
    class: String,
    count: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct MemoryView {
    owner: String,
    bytes: u64,
    bytes_max: u64,
}

#[derive(Debug, Serialize)]
struct RequestsView {
    method: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct WatchersView {
    kind: String,
    namespace: String,
    count: u64,
}

#[derive(Debug, Serialize)]
struct PollsView {
    namespace: String,
    worker_count: u64,
    free_slots: u64,
    waiting_action_count: u64,
}

#[derive(Debug, Serialize)]
struct InstallView {
    leader_id: u64,
    age_ms: u64,
}

#[derive(Debug, Serialize)]
struct FollowerView {
    node_id: u64,
    matched_index: u64,
    lag: u64,
    drained: bool,
}

#[derive(Debug, Serialize)]
struct ConnectionsView {
    port: String,
    count: u64,
    handshake_count: u64,
    count_max: u64,
}

#[derive(Debug, Default, Serialize)]
struct SlotsView {
    count: u64,
    task_count: u64,
}

/// A row of the table: all sections have the same columns.
#[derive(Serialize)]
struct Line {
    section: &'static str,
    item: String,
    values: String,
}

impl Line {
    fn new(section: &'static str, item: impl Into<String>, values: String) -> Self {
        Self {
            section,
            item: item.into(),
            values,
        }
    }
}

impl Row for Line {
    const HEADINGS: &'static [&'static str] = &["SECTION", "ITEM", "VALUES"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.section.to_owned(),
            self.item.clone(),
            self.values.clone(),
        ]
    }
}

impl InspectionView {
    /// The inspection for people: a sentence and a table of all sections.
    pub(crate) fn text(&self) -> String {
        let role = match (self.leading, self.drained) {
            (true, false) => "leads",
            (true, true) => "leads, although it is drained",
            (false, false) => "does not lead",
            (false, true) => "is drained",
        };
        let mut text = format!("node {} {role}\n\n{}", self.node_id, table(&self.lines()));
        if self.omitted_count > 0 {
            let count = self.omitted_count;
            text.push_str(&format!(
                "\n\n{count} smaller rows are omitted; raise --limit to see them"
            ));
        }
        text
    }

    fn lines(&self) -> Vec<Line> {
        let mut lines = self.work_lines();
        lines.extend(self.member_lines());
        lines
    }

    /// What callers and workers do.
    fn work_lines(&self) -> Vec<Line> {
        let queue = self.queue.iter().map(|row| {
            let item = match row.namespace.as_str() {
                "" => row.class.clone(),
                namespace => format!("{namespace}/{}", row.class),
            };
            let values = format!("{} commands, {}", row.count, bytes(row.bytes));
            Line::new("queue", item, values)
        });
        let memory = self.memory.iter().map(|row| {
            let values = format!("{} of {}", bytes(row.bytes), bytes(row.bytes_max));
            Line::new("memory", &row.owner, values)
        });
        let requests = self.requests.iter().map(|row| {
            Line::new(
                "requests",
                &row.method,
                format!("{} in progress", row.count),
            )
        });
        let watchers = self.watchers.iter().map(|row| {
            let item = match row.namespace.as_str() {
                "" => row.kind.clone(),
                namespace => format!("{namespace}/{}", row.kind),
            };
            Line::new("watchers", item, format!("{} waiting", row.count))
        });
        let polls = self.polls.iter().map(|row| {
            let values = format!(
                "{} workers, {} free slots, {} actions with waiting tasks",
                row.worker_count, row.free_slots, row.waiting_action_count
            );
            Line::new("polls", &row.namespace, values)
        });
        let calls = self.calls_without_token.iter().map(|row| {
            let item = match row.address.as_str() {
                "" => "others",
                address => address,
            };
            let certificate = match row.subject.as_str() {
                "" => String::new(),
                subject => format!(" with the certificate of {subject}"),
            };
            let place = match row.namespace.as_str() {
                "" => String::new(),
                namespace => format!(" in {namespace}"),
            };
            let values = format!(
                "{} calls{certificate}, {}{place}",
                row.count, row.permission
            );
            Line::new("no token", item, values)
        });
        let all = queue.chain(memory).chain(requests);
        all.chain(watchers).chain(polls).chain(calls).collect()
    }

    /// What the node does as a member.
    fn member_lines(&self) -> Vec<Line> {
        let installs = self.installs.iter().map(|row| {
            let item = format!("receiving from node {}", row.leader_id);
            let values = format!("for {} s", row.age_ms / 1_000);
            Line::new("snapshot", item, values)
        });
        let sent = Some(self.outgoing_snapshot_count).filter(|count| *count > 0);
        let sent =
            sent.map(|count| Line::new("snapshot", "sending", format!("{count} in progress")));
        let followers = self.followers.iter().map(|row| {
            let drained = if row.drained { ", drained" } else { "" };
            let values = format!("{} entries behind{drained}", row.lag);
            Line::new("followers", format!("node {}", row.node_id), values)
        });
        let connections = self.connections.iter().map(|row| {
            let values = format!(
                "{} of {}, {} in the handshake",
                row.count, row.count_max, row.handshake_count
            );
            Line::new("connections", &row.port, values)
        });
        let keyring = Some(&self.keyring).filter(|keys| !keys.is_empty());
        let keyring = keyring.map(|keys| Line::new("keyring", "keys", keys.clone()));
        let slots = &self.embedded_slots;
        let slots = format!("{} tasks on {} slots", slots.task_count, slots.count);
        let slots = Line::new("embedded", "slots", slots);
        let all = installs.chain(sent).chain(followers).chain(connections);
        all.chain([slots]).chain(keyring).collect()
    }
}

/// Converts rows that have the same fields in both forms.
macro_rules! rows {
    ($($message:ident => $view:ident { $($field:ident),* })*) => {
        $(impl From<v1::$message> for $view {
            fn from(row: v1::$message) -> Self {
                Self { $($field: row.$field),* }
            }
        })*
    };
}

rows! {
    QueuedCommands => QueueView { namespace, class, count, bytes }
    ReservedMemory => MemoryView { owner, bytes, bytes_max }
    RequestsInProgress => RequestsView { method, count }
    WaitingCallers => WatchersView { kind, namespace, count }
    OpenPolls => PollsView { namespace, worker_count, free_slots, waiting_action_count }
    SnapshotInstall => InstallView { leader_id, age_ms }
    FollowerProgress => FollowerView { node_id, matched_index, lag, drained }
    PortConnections => ConnectionsView { port, count, handshake_count, count_max }
    EmbeddedSlots => SlotsView { count, task_count }
    CallsWithoutToken => CallsView { address, subject, permission, namespace, count }
}

fn views<M, V: From<M>>(rows: Vec<M>) -> Vec<V> {
    rows.into_iter().map(V::from).collect()
}

impl From<v1::NodeInspection> for InspectionView {
    fn from(inspection: v1::NodeInspection) -> Self {
        Self {
            node_id: inspection.node_id,
            leading: inspection.leading,
            drained: inspection.drained,
            queue: views(inspection.queue),
            memory: views(inspection.memory),
            requests: views(inspection.requests),
            watchers: views(inspection.watchers),
            polls: views(inspection.polls),
            installs: views(inspection.installs),
            followers: views(inspection.followers),
            connections: views(inspection.connections),
            embedded_slots: inspection
                .embedded_slots
                .map(SlotsView::from)
                .unwrap_or_default(),
            outgoing_snapshot_count: inspection.outgoing_snapshot_count,
            omitted_count: inspection.omitted_count,
            calls_without_token: views(inspection.calls_without_token),
            calls_counted_ms: inspection.calls_counted_ms,
            requires_token: inspection.requires_token,
            keyring: inspection.keyring,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn inspection() -> v1::NodeInspection {
        let queued = |namespace: &str, class: &str, (count, bytes)| v1::QueuedCommands {
            namespace: namespace.to_owned(),
            class: class.to_owned(),
            count,
            bytes,
        };
        let waiting = |kind: &str, namespace: &str, count| v1::WaitingCallers {
            kind: kind.to_owned(),
            namespace: namespace.to_owned(),
            count,
        };
        v1::NodeInspection {
            node_id: 2,
            leading: true,
            queue: vec![
                queued("shop", "intake", (12, 3_481)),
                queued("", "obligation", (2, 90)),
            ],
            memory: vec![v1::ReservedMemory {
                owner: "requests".to_owned(),
                bytes: 65_536,
                bytes_max: 1 << 28,
            }],
            requests: vec![v1::RequestsInProgress {
                method: "flotilla.v1.KvService/SetKey".to_owned(),
                count: 3,
            }],
            watchers: vec![waiting("run", "shop", 7), waiting("action_run", "", 1)],
            polls: vec![v1::OpenPolls {
                namespace: "shop".to_owned(),
                worker_count: 4,
                free_slots: 0,
                waiting_action_count: 2,
            }],
            installs: vec![v1::SnapshotInstall {
                leader_id: 1,
                age_ms: 61_000,
            }],
            followers: vec![v1::FollowerProgress {
                node_id: 3,
                matched_index: 5,
                lag: 900,
                drained: true,
            }],
            connections: vec![v1::PortConnections {
                port: "clients".to_owned(),
                count: 9,
                handshake_count: 1,
                count_max: 16_384,
            }],
            calls_without_token: vec![v1::CallsWithoutToken {
                address: "10.0.0.7".to_owned(),
                subject: "cert:dns:till".to_owned(),
                permission: "run.start".to_owned(),
                namespace: "shop".to_owned(),
                count: 40,
            }],
            calls_counted_ms: 61_000,
            embedded_slots: Some(v1::EmbeddedSlots {
                count: 2,
                task_count: 5,
            }),
            outgoing_snapshot_count: 1,
            keyring: "k1:d5b2b2ac8c4e8f03".to_owned(),
            omitted_count: 3,
            ..v1::NodeInspection::default()
        }
    }

    #[test]
    fn what_waits_is_a_table_of_all_sections() {
        expect![[r#"
            node 2 leads

            SECTION      ITEM                          VALUES
            queue        shop/intake                   12 commands, 3.3 KiB
            queue        obligation                    2 commands, 90 B
            memory       requests                      64.0 KiB of 256.0 MiB
            requests     flotilla.v1.KvService/SetKey  3 in progress
            watchers     shop/run                      7 waiting
            watchers     action_run                    1 waiting
            polls        shop                          4 workers, 0 free slots, 2 actions with waiting tasks
            no token     10.0.0.7                      40 calls with the certificate of cert:dns:till, run.start in shop
            snapshot     receiving from node 1         for 61 s
            snapshot     sending                       1 in progress
            followers    node 3                        900 entries behind, drained
            connections  clients                       9 of 16384, 1 in the handshake
            embedded     slots                         5 tasks on 2 slots
            keyring      keys                          k1:d5b2b2ac8c4e8f03

            3 smaller rows are omitted; raise --limit to see them"#]].assert_eq(&InspectionView::from(inspection()).text());
    }

    #[test]
    fn what_waits_has_exactly_the_published_fields() {
        let view = InspectionView::from(inspection());
        expect![[r#"{"node_id":2,"leading":true,"drained":false,"queue":[{"namespace":"shop","class":"intake","count":12,"bytes":3481},{"namespace":"","class":"obligation","count":2,"bytes":90}],"memory":[{"owner":"requests","bytes":65536,"bytes_max":268435456}],"requests":[{"method":"flotilla.v1.KvService/SetKey","count":3}],"watchers":[{"kind":"run","namespace":"shop","count":7},{"kind":"action_run","namespace":"","count":1}],"polls":[{"namespace":"shop","worker_count":4,"free_slots":0,"waiting_action_count":2}],"installs":[{"leader_id":1,"age_ms":61000}],"followers":[{"node_id":3,"matched_index":5,"lag":900,"drained":true}],"connections":[{"port":"clients","count":9,"handshake_count":1,"count_max":16384}],"embedded_slots":{"count":2,"task_count":5},"outgoing_snapshot_count":1,"omitted_count":3,"calls_without_token":[{"address":"10.0.0.7","subject":"cert:dns:till","permission":"run.start","namespace":"shop","count":40}],"calls_counted_ms":61000,"requires_token":false,"keyring":"k1:d5b2b2ac8c4e8f03"}"#]].assert_eq(&serde_json::to_string(&view).expect("printable"));
    }
}
