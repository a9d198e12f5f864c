//! Every RPC and every HTTP route by every role, in each namespace, with each kind of credential (X16, X17).

use crate::access::{create_token, with_token};
use crate::node::Node;
use crate::wait::until;
use crate::web::call;
use bytes::{Buf, BufMut, Bytes};
use flotilla_api::token::TokenSecret;
use flotilla_api::v1::access_service_client::AccessServiceClient;
use flotilla_api::v1::worker_message::Message as WorkerContent;
use flotilla_api::{FILE_DESCRIPTOR_SET, PERMISSIONS, READS, v1};
use flotilla_server::openapi;
use futures::future::join_all;
use futures::stream;
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorSet};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request, Status};
use tonic_types::StatusExt;

/// The namespace in which the roles hold.
const OWN: &str = "own";
/// The grants of the tokens: every role.
const GRANTS: [&str; 11] = [
    "viewer@own",
    "reader@own",
    "operator@own",
    "editor@own",
    "worker@own",
    "admin@own",
    "admin@own.*",
    "cluster-viewer",
    "backup",
    "cluster-operator",
    "cluster-admin",
];
/// The code of reads in a namespace in which the caller has no grant, whether or not it exists (X24).
const HIDDEN: &str = "namespace_not_found";
/// The empty name stands for `default`, or for the namespace of the definition.
const NAMESPACES: [&str; 4] = [OWN, "other", "missing", ""];

const VIEWER: &[&str] = &[
    "workflow.read",
    "worker.read",
    "stream.read",
    "action.read",
    "run.read",
    "quota.read",
];
const READER: &[&str] = &["run.payloads", "kv.read"];
const OPERATOR: &[&str] = &[
    "run.start",
    "run.control",
    "run.approve",
    "action.invoke",
    "dlq.write",
    "workflow.toggle",
    "plan.reset",
    "cache.write",
    "stream.append",
    "kv.write",
    "worker.control",
];
const EDITOR: &[&str] = &["workflow.write", "action.write", "stream.write"];
const ADMIN: &[&str] = &["token.write", "identity.assign"];
/// What the role `admin` permits only in a tree of namespaces (X28).
const TREE: &[&str] = &["namespace.create", "namespace.purge"];

/// What a token with this grant may do in its namespace or in the cluster; `None`: everything.
fn permitted_by(grant: &str) -> Option<BTreeSet<&'static str>> {
    let sets: &[&[&'static str]] = match grant.trim_end_matches("@own") {
        "viewer" => &[VIEWER],
        "reader" => &[VIEWER, READER],
        "operator" => &[VIEWER, READER, OPERATOR],
        "editor" => &[VIEWER, READER, OPERATOR, EDITOR],
        "admin" => &[VIEWER, READER, OPERATOR, EDITOR, ADMIN],
        "admin@own.*" => &[VIEWER, READER, OPERATOR, EDITOR, ADMIN, TREE],
        "worker" => &[&["task.work", "action.register_missing"]],
        "cluster-viewer" => &[&["cluster.read", "quota.read"]],
        "backup" => &[&["cluster.backup"]],
        "cluster-operator" => &[&[
            "cluster.read",
            "cluster.backup",
            "cluster.operate",
            "quota.read",
        ]],
        "cluster-admin" => return None,
        other => panic!("{other} is not a grant of this test"),
    };
    Some(sets.concat().into_iter().collect())
}

/// The names that stood for fields in paths.
static NAMES_COUNT: AtomicUsize = AtomicUsize::new(0);

/// One RPC, called over gRPC or at one of its HTTP routes.
struct Rpc {
    path: &'static str,
    /// The HTTP method and the path of the route, with fields of the request in braces.
    route: Option<(String, String)>,
    /// The permissions of which one suffices, `credential` or `task token`.
    needs: Vec<&'static str>,
    /// The number of the field with the namespace, if its requests name one.
    namespace_field: Option<u32>,
}

impl Rpc {
    fn all() -> Vec<Self> {
        let inputs = inputs();
        let over_grpc = PERMISSIONS.iter().map(|(path, needs)| Self {
            path,
            route: None,
            needs: needs.split(" or ").collect(),
            namespace_field: inputs[*path],
        });
        let mut rpcs: Vec<Self> = over_grpc.collect();
        let routes = routes();
        for number in 0..rpcs.len() {
            let rpc = &rpcs[number];
            let (path, needs, field) = (rpc.path, rpc.needs.clone(), rpc.namespace_field);
            let of_rpc = routes.iter().filter(|(call, _)| call == path);
            rpcs.extend(of_rpc.map(|(_, route)| Self {
                path,
                route: Some(route.clone()),
                needs: needs.clone(),
                namespace_field: field,
            }));
        }
        rpcs
    }

    /// The path of its route, with what stands for the fields.
    fn http_path(&self, path: &str, namespace: &str) -> String {
        let of_namespace = self.path.contains("NamespaceService");
        // A worker may register only actions that are missing.
        let new_name = format!("x{}", NAMES_COUNT.fetch_add(1, Ordering::Relaxed));
        let segments = path.split('/').map(|segment| match segment {
            "{namespace}" => namespace,
            "{name}" if of_namespace => namespace,
            "{kind}" => "run",
            "{node_id}" | "{number}" => "9",
            variable if variable.starts_with('{') => &new_name,
            literal => literal,
        });
        segments.collect::<Vec<_>>().join("/")
    }

    /// The worker's stream names the namespace in its first message.
    fn is_stream(&self) -> bool {
        self.path == "/flotilla.v1.WorkerService/Stream"
    }

    /// Whether it acts in the namespace that it names; calls about the cluster may name one to select what they list.
    fn is_in_namespace(&self) -> bool {
        let is_of_cluster = |one: &&str| {
            one.starts_with("cluster.") || ["access.write", "quota.write"].contains(one)
        };
        (self.namespace_field.is_some() || self.is_stream())
            && !self.needs.iter().any(is_of_cluster)
    }

    /// The namespaces in which it is tried.
    fn namespaces(&self) -> &'static [&'static str] {
        match (self.is_in_namespace(), &self.route) {
            (true, None) => &NAMESPACES,
            // A segment of a path is not empty.
            (true, Some(_)) => &NAMESPACES[..3],
            (false, _) => &[OWN],
        }
    }

    /// A request that has nothing but the namespace; the first message of a worker's stream also names the worker.
    fn request(&self, namespace: &str) -> Bytes {
        if self.is_stream() {
            let hello = v1::WorkerHello {
                namespace: namespace.to_owned(),
                worker_id: "w".to_owned(),
                ..Default::default()
            };
            let message = v1::WorkerMessage {
                sequence: 1,
                message: Some(WorkerContent::Hello(hello)),
            };
            return message.encode_to_vec().into();
        }
        let mut request = Vec::new();
        if let Some(field) = self.namespace_field {
            prost::encoding::string::encode(field, &namespace.to_owned(), &mut request);
        }
        request.into()
    }
}

impl fmt::Display for Rpc {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.route {
            Some((method, path)) => write!(formatter, "{method} {path}"),
            None => formatter.write_str(self.path),
        }
    }
}

/// The HTTP routes, each with the path of its RPC.
fn routes() -> Vec<(String, (String, String))> {
    let document = openapi();
    let paths = document["paths"].as_object().unwrap();
    let routes = paths.iter().flat_map(|(path, operations)| {
        let operations = operations.as_object().unwrap().iter();
        operations.map(move |(method, operation)| {
            let rpc = operation["x-flo-rpc"].as_str().unwrap();
            (rpc.to_owned(), (method.to_uppercase(), path.clone()))
        })
    });
    routes.collect()
}

/// The field with the namespace of each RPC's request, by the path of the RPC.
fn inputs() -> BTreeMap<String, Option<u32>> {
    let files = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).unwrap().file;
    let messages: BTreeMap<String, &DescriptorProto> = files
        .iter()
        .flat_map(|file| {
            let named = |message| {
                (
                    format!(".{}.{}", file.package(), DescriptorProto::name(message)),
                    message,
                )
            };
            file.message_type.iter().map(named)
        })
        .collect();
    let mut inputs = BTreeMap::new();
    for file in &files {
        for service in &file.service {
            for method in &service.method {
                let path = format!("/{}.{}/{}", file.package(), service.name(), method.name());
                let of_namespace = service.name() == "NamespaceService";
                let field = if of_namespace { "name" } else { "namespace" };
                let mut fields = messages[method.input_type()].field.iter();
                let field = fields.find(|found| found.name() == field);
                inputs.insert(path, field.map(|field| field.number().unsigned_abs()));
            }
        }
    }
    inputs
}

/// Messages as bytes.
#[derive(Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, target: &mut EncodeBuf<'_>) -> Result<(), Status> {
        target.put(item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, source: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(source.copy_to_bytes(source.remaining())))
    }
}

/// The status and reason with which the node refuses the call for its credential; `None` if it does not.
async fn refusal(
    node: &Node,
    rpc: &Rpc,
    (namespace, token): (&str, Option<&str>),
) -> Option<(Code, String)> {
    // The node checks only some unknown credentials per second.
    until("the credential to be checked", async || {
        let refused = one_refusal(node, rpc, (namespace, token)).await;
        match refused {
            Some((Code::ResourceExhausted, reason)) if reason == "credential_attempts" => None,
            Some((Code::ResourceExhausted, _)) => Some(None),
            refused => Some(refused),
        }
    })
    .await
}

/// As [`refusal`], of one attempt. Other refusals than those by rights are of no interest, except that the node is overloaded.
async fn one_refusal(
    node: &Node,
    rpc: &Rpc,
    (namespace, token): (&str, Option<&str>),
) -> Option<(Code, String)> {
    if let Some((method, path)) = &rpc.route {
        let line = format!("{method} {}", rpc.http_path(path, namespace));
        return refusal_over_http(node, &line, token).await;
    }
    let messages = stream::iter([rpc.request(namespace)]);
    let mut request = match token {
        Some(token) => with_token(messages, token),
        None => Request::new(messages),
    };
    // A permitted call may wait, for a task or for an update.
    request.set_timeout(Duration::from_secs(2));
    let mut client = Grpc::new(node.channel());
    client.ready().await.unwrap();
    let path = rpc.path.parse().unwrap();
    let status = match client.streaming(request, path, Raw).await {
        Ok(response) => response.into_inner().message().await.err()?,
        Err(status) => status,
    };
    let reason = status.get_details_error_info().map(|info| info.reason);
    let reason = reason.unwrap_or_default();
    let is_refused = match status.code() {
        Code::Unauthenticated | Code::PermissionDenied | Code::ResourceExhausted => true,
        Code::NotFound => reason == HIDDEN,
        _ => false,
    };
    is_refused.then_some((status.code(), reason))
}

/// As [`refusal`], over HTTP.
async fn refusal_over_http(node: &Node, line: &str, token: Option<&str>) -> Option<(Code, String)> {
    let authorization = token.map(|token| format!("authorization: Bearer {token}"));
    let headers = ["content-type: application/json", "flo-timeout-ms: 2000"];
    let headers: Vec<&str> = headers
        .into_iter()
        .chain(authorization.as_deref())
        .collect();
    let has_body = ["POST ", "PUT "]
        .iter()
        .any(|method| line.starts_with(method));
    let body = match has_body {
        true if line.ends_with("/decide") => r#"{"approved": true}"#,
        true if line.contains("/kv") => r#"{"value": 1}"#,
        true if line.contains("quota") => r#"{"limits": {}, "any_version": true}"#,
        true if line.starts_with("PUT") && line.contains("/actions/") => {
            r#"{"only_if_missing": true}"#
        }
        true => "{}",
        false => "",
    };
    let reply = call(&node.http_address, line, &headers, body).await;
    let code = match reply.status {
        404 if reply.problem().1 == HIDDEN => Code::NotFound,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        429 => Code::ResourceExhausted,
        _ => return None,
    };
    Some((code, reply.problem().1.to_owned()))
}

/// The digest of the state, which covers every row.
async fn digest(node: &Node, root: &str) -> String {
    await_last_use(node, root).await;
    let request = with_token(v1::GetStatusRequest::default(), root);
    let status = node.cluster().get_status(request).await.unwrap();
    let mut nodes = status.into_inner().nodes.into_iter();
    let digest = nodes.find_map(|node| node.digest);
    digest.expect("the node knows its own").value
}

/// Waits until the state has the hour in which the caller's token is used: it changes the digest.
async fn await_last_use(node: &Node, root: &str) {
    until("the use of the token to be recorded", async || {
        let request = with_token(v1::WhoAmIRequest {}, root);
        let mut access = AccessServiceClient::new(node.channel());
        let token = access.who_am_i(request).await.unwrap();
        token.into_inner().token?.last_used_at_ms.map(drop)
    })
    .await;
}

async fn closed_node() -> (Node, String) {
    let node = Node::start().await;
    let (root, _) = create_token(&node, "cluster-admin", None).await;
    for name in [OWN, "other"] {
        let request = v1::CreateNamespaceRequest {
            name: name.to_owned(),
            ..Default::default()
        };
        node.namespaces().create_namespace(request).await.unwrap();
    }
    (node, root)
}

async fn close(node: &Node, root: &str) {
    let request = v1::SetAccessRequest {
        mode: v1::AccessMode::Closed.into(),
        ..Default::default()
    };
    let mut access = AccessServiceClient::new(node.channel());
    access.set_access(with_token(request, root)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_requires_a_valid_credential() {
    let (node, root) = closed_node().await;
    let (revoked, id) = create_token(&node, "cluster-admin", None).await;
    let (expired, _) = create_token(&node, "cluster-admin", Some(1)).await;
    let unknown = TokenSecret::draw().into_token(&id).expose().to_owned();
    let request = v1::RevokeClusterTokenRequest {
        id,
        ..Default::default()
    };
    let mut access = AccessServiceClient::new(node.channel());
    access.revoke_cluster_token(request).await.unwrap();
    close(&node, &root).await;
    let whoami = Rpc::all()
        .into_iter()
        .find(|rpc| rpc.path.ends_with("/WhoAmI"));
    let whoami = whoami.unwrap();
    until("the token to expire", async || {
        let refused = refusal(&node, &whoami, (OWN, Some(&expired))).await?;
        (refused.1 == "credential_expired").then_some(())
    })
    .await;

    let before = digest(&node, &root).await;
    for rpc in Rpc::all() {
        if rpc.needs == ["task token"] {
            continue;
        }
        for (token, reason) in [
            (None, "credential_missing"),
            (Some("flo_malformed"), "credential_malformed"),
            (Some(&*unknown), "credential_unknown"),
            (Some(&*expired), "credential_expired"),
            (Some(&*revoked), "credential_revoked"),
        ] {
            for namespace in rpc.namespaces() {
                let refused = refusal(&node, &rpc, (namespace, token)).await;
                let expected = Some((Code::Unauthenticated, reason.to_owned()));
                assert_eq!(refused, expected, "{rpc} in {namespace}");
            }
        }
    }
    assert_eq!(digest(&node, &root).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_requires_its_permission_in_its_namespace() {
    let (node, root) = closed_node().await;
    let mut tokens = Vec::new();
    for grant in GRANTS {
        tokens.push((grant, create_token(&node, grant, None).await.0));
    }
    close(&node, &root).await;
    let uses = tokens.iter().map(|(_, token)| await_last_use(&node, token));
    join_all(uses).await;
    let (mut refused_count, mut permitted_count, mut hidden_count) = (0, 0, 0);
    for (grant, token) in &tokens {
        let permissions = permitted_by(grant);
        let is_permitted = |rpc: &Rpc, namespace: &str| {
            let is_any = rpc.needs == ["credential"] || rpc.needs == ["task token"];
            let Some(permissions) = &permissions else {
                return true;
            };
            // Roles of the cluster permit in each namespace what they permit, others only in their own.
            let is_within = !grant.contains('@') || rpc.is_in_namespace() && namespace == OWN;
            is_any || is_within && rpc.needs.iter().any(|one| permissions.contains(one))
        };
        let before = digest(&node, &root).await;
        let rpcs = Rpc::all();
        let calls = || {
            rpcs.iter().flat_map(|rpc| {
                rpc.namespaces()
                    .iter()
                    .map(move |namespace| (rpc, *namespace))
            })
        };
        for (rpc, namespace) in calls().filter(|(rpc, namespace)| !is_permitted(rpc, namespace)) {
            let refused = refusal(&node, rpc, (namespace, Some(token))).await;
            let has_grant = grant.contains('@') && namespace == OWN;
            let is_hidden = READS.contains(&rpc.path) && rpc.is_in_namespace() && !has_grant;
            let (code, reason) = match is_hidden {
                true => (Code::NotFound, HIDDEN),
                false => (Code::PermissionDenied, "permission_denied"),
            };
            let expected = Some((code, reason.to_owned()));
            assert_eq!(refused, expected, "{rpc} by {grant} in {namespace}");
            refused_count += 1;
            hidden_count += usize::from(is_hidden);
        }
        assert_eq!(
            digest(&node, &root).await,
            before,
            "refused calls of {grant}"
        );
        for (rpc, namespace) in calls().filter(|(rpc, namespace)| is_permitted(rpc, namespace)) {
            let refused = refusal(&node, rpc, (namespace, Some(token))).await;
            assert_eq!(refused, None, "{rpc} by {grant} in {namespace}");
            permitted_count += 1;
        }
    }
    println!("{refused_count} calls were refused, {permitted_count} were permitted");
    assert!(refused_count > 4_000 && permitted_count > 1_000 && hidden_count > 500);
}
