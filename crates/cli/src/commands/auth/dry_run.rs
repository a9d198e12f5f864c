//! What a closed cluster would refuse.

use super::mode;
use crate::failure::Failure;
use crate::output::{Row, table};
use crate::session::Session;
use flotilla_client::v1::{
    AccessMode, CallsWithoutToken, GetStatusRequest, InspectNodeRequest, NodeInspection,
    WhoAmIRequest,
};
use serde::Serialize;

/// The maximum number of rows of a node.
const ROWS_MAX: u32 = 100;

/// The calls of the last hour that a closed cluster would have refused.
#[derive(Debug, Serialize)]
struct DryRunView {
    mode: &'static str,
    /// Whether the caller has shown a token. Without one, it may not close the cluster.
    has_token: bool,
    nodes: Vec<NodeView>,
    calls: Vec<CallsRow>,
}

/// What a node has counted.
#[derive(Debug, Serialize)]
struct NodeView {
    node_id: u64,
    /// How long it has counted; `None` if that is unknown.
    counted_ms: Option<u64>,
    /// Why its calls are unknown, such as that it does not respond.
    error: Option<String>,
    /// Whether it refuses these calls already, by its configuration.
    requires_token: bool,
    /// The rows that it has left out.
    omitted_count: u64,
}

#[derive(Debug, Serialize)]
struct CallsRow {
    node_id: u64,
    /// `None` for the calls of callers that the node does not count separately.
    address: Option<String>,
    /// The subject of the client certificate, which has no right to the calls; `None` without a certificate.
    subject: Option<String>,
    permission: Option<String>,
    /// `None` for calls about the cluster, or in an unknown namespace.
    namespace: Option<String>,
    count: u64,
}

impl Row for CallsRow {
    const HEADINGS: &'static [&'static str] = &[
        "NODE",
        "ADDRESS",
        "CERTIFICATE",
        "NEEDS",
        "NAMESPACE",
        "CALLS",
    ];

    fn cells(&self) -> Vec<String> {
        let others = || "others".to_owned();
        vec![
            self.node_id.to_string(),
            self.address.clone().unwrap_or_else(others),
            self.subject.clone().unwrap_or_default(),
            self.permission.clone().unwrap_or_default(),
            self.namespace.clone().unwrap_or_default(),
            self.count.to_string(),
        ]
    }
}

/// Shows what the nodes have counted, and changes nothing.
pub(super) async fn show(session: &Session) -> Result<(), Failure> {
    let client = session.client()?;
    let caller = client.who_am_i(WhoAmIRequest {}).await?;
    let status = client.get_status(GetStatusRequest {}).await?;
    let mut view = DryRunView {
        mode: mode::name(caller.mode()),
        has_token: caller.token.is_some(),
        nodes: Vec::new(),
        calls: Vec::new(),
    };
    for node in status.nodes {
        let request = InspectNodeRequest {
            node_id: Some(node.node_id),
            limit: ROWS_MAX,
        };
        let inspection = client.inspect_node(request).await;
        view.add(node.node_id, inspection.map_err(|error| error.to_string()));
    }
    let is_closed = caller.mode() == AccessMode::Closed;
    session.output.value(&view, |view| view.text(is_closed))
}

impl DryRunView {
    fn add(&mut self, node_id: u64, inspection: Result<NodeInspection, String>) {
        let seen = inspection.as_ref().ok();
        self.nodes.push(NodeView {
            node_id,
            counted_ms: seen.map(|one| one.calls_counted_ms),
            error: inspection.as_ref().err().cloned(),
            requires_token: seen.is_some_and(|one| one.requires_token),
            omitted_count: seen.map_or(0, |one| one.omitted_count),
        });
        let calls = inspection
            .into_iter()
            .flat_map(|one| one.calls_without_token);
        self.calls.extend(calls.map(|row| {
            let CallsWithoutToken {
                address,
                permission,
                count,
                subject,
                namespace,
            } = row;
            CallsRow {
                node_id,
                address: Some(address).filter(|text| !text.is_empty()),
                subject: Some(subject).filter(|text| !text.is_empty()),
                permission: Some(permission).filter(|text| !text.is_empty()),
                namespace: Some(namespace).filter(|text| !text.is_empty()),
                count,
            }
        }));
    }

    fn text(&self, is_closed: bool) -> String {
        let mut parts = Vec::new();
        if is_closed {
            parts.push("the cluster is already closed".to_owned());
        }
        if self.calls.is_empty() {
            parts.push("no node has counted a call that a closed cluster would refuse".to_owned());
        } else {
            let heading = "a closed cluster would have refused these calls:";
            parts.push(format!("{heading}\n\n{}\n", table(&self.calls)));
        }
        parts.extend(self.nodes.iter().map(NodeView::text));
        if !self.has_token {
            let text = "`flo auth enable` needs a token that permits `access.write`: pass it with --token-file";
            parts.push(text.to_owned());
        }
        parts.join("\n")
    }
}

impl NodeView {
    fn text(&self) -> String {
        let Self {
            node_id,
            counted_ms,
            error,
            requires_token,
            omitted_count,
        } = self;
        let Some(counted_ms) = counted_ms else {
            let error = error.as_deref().unwrap_or_default();
            return format!("the calls of node {node_id} are unknown: {error}");
        };
        let omitted = match omitted_count {
            0 => String::new(),
            count => format!("; up to {count} smaller rows are omitted"),
        };
        let minutes = counted_ms / 60_000;
        let refused = match requires_token {
            true => " and has refused them, because its configuration requires a token",
            false => "",
        };
        format!("node {node_id} has counted calls for {minutes} min{refused}{omitted}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_calls_of_all_nodes_are_shown_and_what_is_missing() {
        let row = |address: &str, permission: &str, count| CallsWithoutToken {
            address: address.to_owned(),
            permission: permission.to_owned(),
            count,
            subject: match address {
                "" => String::new(),
                _ => "cert:dns:till".to_owned(),
            },
            namespace: match address {
                "" => String::new(),
                _ => "shop".to_owned(),
            },
        };
        let mut view = DryRunView {
            mode: "open",
            has_token: false,
            nodes: Vec::new(),
            calls: Vec::new(),
        };
        view.add(
            1,
            Ok(NodeInspection {
                calls_without_token: vec![row("10.0.0.7", "run.start", 1_200), row("", "", 3)],
                calls_counted_ms: 3_600_000,
                omitted_count: 2,
                ..NodeInspection::default()
            }),
        );
        view.add(2, Err("it does not respond".to_owned()));
        expect![[r#"
            a closed cluster would have refused these calls:

            NODE  ADDRESS   CERTIFICATE    NEEDS      NAMESPACE  CALLS
            1     10.0.0.7  cert:dns:till  run.start  shop       1200
            1     others                                         3

            node 1 has counted calls for 60 min; up to 2 smaller rows are omitted
            the calls of node 2 are unknown: it does not respond
            `flo auth enable` needs a token that permits `access.write`: pass it with --token-file"#]].assert_eq(&view.text(false));
        expect![[r#"{"mode":"open","has_token":false,"nodes":[{"node_id":1,"counted_ms":3600000,"error":null,"requires_token":false,"omitted_count":2},{"node_id":2,"counted_ms":null,"error":"it does not respond","requires_token":false,"omitted_count":0}],"calls":[{"node_id":1,"address":"10.0.0.7","subject":"cert:dns:till","permission":"run.start","namespace":"shop","count":1200},{"node_id":1,"address":null,"subject":null,"permission":null,"namespace":null,"count":3}]}"#]].assert_eq(&serde_json::to_string(&view).expect("printable"));
    }

    #[test]
    fn a_cluster_that_would_refuse_nothing_says_so() {
        let mut view = DryRunView {
            mode: "closed",
            has_token: true,
            nodes: Vec::new(),
            calls: Vec::new(),
        };
        view.add(1, Ok(NodeInspection::default()));
        expect![[r#"
            the cluster is already closed
            no node has counted a call that a closed cluster would refuse
            node 1 has counted calls for 0 min"#]]
        .assert_eq(&view.text(true));
    }
}
