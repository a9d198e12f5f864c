//! What a client says of nodes that it cannot trust.

use flotilla_client::v1::GetRunRequest;
use flotilla_client::{Client, ClientError, ClientOptions, ErrorKind, TlsOptions};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, PKCS_ECDSA_P256_SHA256,
    date_time_ymd,
};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// After this long a test has failed: what it waits for will not come.
const TIMEOUT: Duration = Duration::from_secs(20);
/// For how long a client asks again what will not change.
const BRIEFLY: Duration = Duration::from_millis(200);

/// A server that completes the TLS handshake with any client and then closes the connection.
struct Stub {
    address: String,
    /// The PEM of its authority.
    authority: String,
}

impl Stub {
    /// Accepts any client, with a certificate for these hosts.
    async fn start(hosts: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Self {
        Self::start_as(false, hosts, change).await
    }

    /// Accepts clients with a certificate of its authority.
    async fn start_closed() -> Self {
        Self::start_as(true, &["127.0.0.1"], |_| {}).await
    }

    async fn start_as(
        is_closed: bool,
        hosts: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Self {
        let key = || KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("randomness");
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, key()).expect("well-formed");
        let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
        let mut params = CertificateParams::new(hosts).expect("names");
        change(&mut params);
        let key = key();
        let cert = params.signed_by(&key, &authority).expect("well-formed");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(authority.der().clone()).expect("well-formed");
        let mut known =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
        if !is_closed {
            known = known.allow_unauthenticated();
        }
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has suites")
            .with_client_cert_verifier(known.build().expect("one authority"))
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("they belong together");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                drop(acceptor.accept(stream).await);
            }
        });
        Self {
            address,
            authority: authority.pem(),
        }
    }
}

/// A client that trusts the authority in the file `ca.pem` of the folder, and retries for this long
/// while it cannot connect.
fn client(folder: &TempDir, address: &str, limit: Duration) -> Client {
    client_of(folder, &[address], limit)
}

/// The same, with several endpoints.
fn client_of(folder: &TempDir, addresses: &[&str], limit: Duration) -> Client {
    let ca = folder.path().join("ca.pem");
    Client::connect(ClientOptions {
        endpoints: addresses
            .iter()
            .map(|&address| address.to_owned())
            .collect(),
        tls: Some(TlsOptions { ca, identity: None }),
        timeout: TIMEOUT,
        unreachable_timeout: limit,
        ..ClientOptions::default()
    })
    .expect("the files are good")
}

async fn refused(client: &Client) -> ClientError {
    let response = client.get_run(GetRunRequest::default()).await;
    response.expect_err("no node serves there")
}

async fn refused_by(stub: &Stub, authority: &str, limit: Duration) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("ca.pem"), authority).expect("room");
    let error = refused(&client(&folder, &stub.address, limit)).await;
    assert_eq!(error.code(), "tls_failed", "{error}");
    assert_eq!(error.kind(), ErrorKind::ConnectionFailed);
    assert!(error.hint().is_some(), "{error}");
    error.message().to_owned()
}

#[tokio::test]
async fn what_is_wrong_with_a_nodes_certificate_is_said() {
    let good = Stub::start(&["127.0.0.1"], |_| {}).await;
    let other = Stub::start(&["elsewhere"], |_| {}).await;
    let old = Stub::start(&["127.0.0.1"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    })
    .await;
    let early = Stub::start(&["127.0.0.1"], |params| {
        params.not_before = date_time_ymd(2400, 1, 1);
    })
    .await;
    let cases = [
        (&good, &other.authority, "not signed by a trusted authority"),
        (&other, &other.authority, "for another host"),
        (&old, &old.authority, "has expired"),
        (&early, &early.authority, "not valid yet"),
    ];
    for (stub, authority, expected) in cases {
        let said = refused_by(stub, authority, TIMEOUT).await;
        assert!(said.contains(expected), "{said}");
        assert!(said.contains(&stub.address), "{said}");
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_learns_that_one_is_required_although_it_was_connected() {
    let stub = Stub::start_closed().await;
    let said = refused_by(&stub, &stub.authority, TIMEOUT).await;
    assert!(said.contains("requires a client certificate"), "{said}");
}

#[tokio::test]
async fn a_node_that_is_not_there_does_not_hide_the_certificate_of_another() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let away = listener.local_addr().expect("it is bound").to_string();
    drop(listener);
    let old = Stub::start(&["127.0.0.1"], |params| {
        params.not_after = date_time_ymd(2020, 1, 1);
    })
    .await;
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("ca.pem"), &old.authority).expect("room");
    for addresses in [[&*away, &*old.address], [&*old.address, &*away]] {
        let error = refused(&client_of(&folder, &addresses, BRIEFLY)).await;
        assert_eq!(error.code(), "tls_failed", "{error}");
        assert_eq!(error.kind(), ErrorKind::ConnectionFailed);
        assert!(error.message().contains("has expired"), "{error}");
        let hint = error.hint().expect("there is advice");
        assert!(hint.contains("new certificate"), "{hint}");
    }
}

#[tokio::test]
async fn a_client_without_tls_learns_that_the_node_requires_it() {
    let stub = Stub::start(&["127.0.0.1"], |_| {}).await;
    let client = Client::connect(ClientOptions {
        endpoints: vec![stub.address.clone()],
        ..ClientOptions::default()
    });
    let error = refused(&client.expect("well-formed")).await;
    assert_eq!(error.code(), "tls_failed", "{error}");
    assert!(error.message().contains("requires TLS"), "{error}");
}

#[tokio::test]
async fn the_files_are_read_again_for_each_connection() {
    let stub = Stub::start(&["127.0.0.1"], |_| {}).await;
    let other = Stub::start(&["127.0.0.1"], |_| {}).await;
    let folder = tempfile::tempdir().expect("a folder");
    let write = |text: &str| fs::write(folder.path().join("ca.pem"), text).expect("room");
    write(&other.authority);
    let client = client(&folder, &stub.address, BRIEFLY);
    assert_eq!(refused(&client).await.code(), "tls_failed");
    write("no PEM");
    let error = refused(&client).await;
    assert!(error.message().contains("it holds none"), "{error}");
    write(&stub.authority);
    // The node is now trusted; that the server behind it does not answer is a separate matter.
    let client = client.with_timeout(BRIEFLY);
    assert_ne!(refused(&client).await.code(), "tls_failed");
}

#[tokio::test]
async fn a_balancer_that_breaks_off_while_its_node_restarts_is_asked_again() {
    let node = Stub::start_closed().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let behind = node.address.clone();
    tokio::spawn(async move {
        for _ in 0..2 {
            drop(listener.accept().await);
        }
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut node = TcpStream::connect(&behind).await.expect("it listens");
            drop(copy_bidirectional(&mut stream, &mut node).await);
        }
    });
    let authority = node.authority.clone();
    let balancer = Stub { address, authority };
    let said = refused_by(&balancer, &balancer.authority, TIMEOUT).await;
    assert!(
        said.contains("requires a client certificate"),
        "the node was never asked: {said}"
    );
}

#[tokio::test]
async fn what_breaks_off_again_and_again_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    tokio::spawn(async move {
        // Closes each connection without a response.
        while let Ok((stream, _)) = listener.accept().await {
            drop(stream);
        }
    });
    let authority = Stub::start(&["127.0.0.1"], |_| {}).await.authority;
    let silent = Stub { address, authority };
    let said = refused_by(&silent, &silent.authority, BRIEFLY).await;
    assert!(said.contains("broke off"), "{said}");
}
