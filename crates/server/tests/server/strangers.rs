//! Callers whose calls are never admitted, and that use up the connections of a port.

use crate::node::{APPROVAL, Node, free_address, start_of};
use crate::web::get;
use flotilla_replica::protocol::ProbeRequest;
use flotilla_replica::protocol::peer_client::PeerClient;
use std::future::poll_fn;
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::Request;
use tonic::transport::Endpoint;

/// What an HTTP/2 client sends first: the preface and empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0xxxxxxxx";

/// This many connections that speak HTTP/2 and make no call.
async fn connect(address: &str, count: usize) -> Vec<TcpStream> {
    let mut strangers = Vec::new();
    for _ in 0..count {
        let mut stranger = TcpStream::connect(address).await.unwrap();
        // A node that has too many closes it.
        drop(stranger.write_all(PREFACE).await);
        drop(stranger.write_all(PING).await);
        strangers.push(stranger);
    }
    strangers
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_at_the_peer_port_keep_no_member_from_connecting() {
    let nodes = Node::start_cluster().await;
    let peer = nodes[0].peer_address.as_deref().unwrap();
    // More than a node accepts from one address, at which the members are, too.
    let mut strangers = connect(peer, 600).await;
    for stranger in &mut strangers {
        drop(stranger.write_all(PING).await);
    }
    let endpoint = Endpoint::from_shared(format!("http://{peer}")).unwrap();
    let mut member = PeerClient::new(endpoint.connect().await.unwrap());
    let probed = member.probe(ProbeRequest::default()).await.unwrap();
    assert_eq!(probed.into_inner().members.len(), 3);
    nodes[0].create(APPROVAL).await;
    for node in &nodes {
        node.run(start_of("approval", "")).await;
    }
    drop(strangers);
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_at_the_port_of_operators_keep_no_probe_from_being_answered() {
    let address: SocketAddr = free_address();
    let _node = Node::start_with(|config| config.admin_listen = Some(address)).await;
    let address = address.to_string();
    let strangers = connect(&address, 300).await;
    assert_eq!(get(&address, "/livez").await.0, 200);
    assert_eq!(get(&address, "/readyz").await.0, 200);
    drop(strangers);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_of_another_site_can_send_is_not_a_call() {
    let admin: SocketAddr = free_address();
    let node = Node::start_with(|config| config.admin_listen = Some(admin)).await;
    let at_admin = Endpoint::from_shared(format!("http://{admin}")).unwrap();
    let ports = [
        (node.channel(), "/flotilla.v1.AccessService/WhoAmI"),
        (
            at_admin.connect().await.unwrap(),
            "/flotilla.v1.ClusterService/GetStatus",
        ),
    ];
    for (mut channel, path) in ports {
        let mut send = async |media_type: Option<&str>| {
            let mut request = Request::post(format!("http://{}{path}", node.address));
            if let Some(media_type) = media_type {
                request = request.header("content-type", media_type);
            }
            // An empty message.
            let body = Body::new(String::from("\0\0\0\0\0"));
            poll_fn(|context| channel.poll_ready(context))
                .await
                .unwrap();
            let response = channel.call(request.body(body).unwrap()).await.unwrap();
            response.status().as_u16()
        };
        // The media types that a page may send to another site without its consent.
        for media_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=application/grpc",
            "application/grp",
            "application/grpcx",
        ] {
            assert_eq!(send(Some(media_type)).await, 415, "{path} {media_type}");
        }
        assert_eq!(send(None).await, 415, "{path}");
        for media_type in ["application/grpc", "application/grpc+proto"] {
            assert_eq!(send(Some(media_type)).await, 200, "{path} {media_type}");
        }
    }
}
