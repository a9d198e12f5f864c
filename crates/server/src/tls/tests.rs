//! Which files are refused, how files are renewed, and which callers each port accepts.

use super::*;
use crate::config::ClientCertificates;
use crate::connections::{Admission, Bounds, NodeSockets};
use flotilla_replica::Sockets;
use futures::StreamExt;
use rcgen::ExtendedKeyUsagePurpose::{ClientAuth, ServerAuth};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, SanType, date_time_ymd,
};
use std::fs;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, Error, RootCertStore, ServerConfig,
};

const BOTH: [ExtendedKeyUsagePurpose; 2] = [ServerAuth, ClientAuth];

/// A folder with an authority and the files that it issued.
struct Folder {
    dir: tempfile::TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// What a node at these hosts requires.
fn at(hosts: Vec<(&'static str, String)>) -> TlsRequirements {
    TlsRequirements {
        client_hosts: hosts,
        peer_hosts: Vec::new(),
        client_certificates: ClientCertificates::Required,
    }
}

impl Folder {
    /// With the certificate of a node on this machine.
    fn new() -> Self {
        let (params, key) = signer(&[]);
        let authority = CertifiedIssuer::self_signed(params, key).unwrap();
        let folder = Self {
            dir: tempfile::tempdir().unwrap(),
            authority,
        };
        folder.write("ca.pem", &folder.authority.pem());
        folder.issue("node", &BOTH, |_| {});
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Makes `NAME.pem` and `NAME-key.pem` for 127.0.0.1.
    fn issue(
        &self,
        name: &str,
        usages: &[ExtendedKeyUsagePurpose],
        change: impl FnOnce(&mut CertificateParams),
    ) {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = usages.to_vec();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.authority).unwrap();
        self.write(&format!("{name}.pem"), &cert.pem());
        self.write(&format!("{name}-key.pem"), &key.serialize_pem());
    }

    /// The same through an intermediate authority that the folder's has signed and that names
    /// `limits`.
    fn issue_through(
        &self,
        limits: &[ExtendedKeyUsagePurpose],
        name: &str,
        usages: &[ExtendedKeyUsagePurpose],
    ) {
        let (params, key) = signer(limits);
        let between = CertifiedIssuer::signed_by(params, key, &self.authority).unwrap();
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = usages.to_vec();
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &between).unwrap();
        let chain = [cert.pem(), between.pem()].concat();
        self.write(&format!("{name}.pem"), &chain);
        self.write(&format!("{name}-key.pem"), &key.serialize_pem());
    }

    /// The files of a caller that has the certificate `name`.
    fn files(&self, name: &str) -> NodeTlsFiles {
        NodeTlsFiles {
            clients: self.three_files(name),
            peers: None,
        }
    }

    fn three_files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            keys: TlsKeys {
                cert: "tls_cert",
                key: "tls_key",
                ca: "tls_ca",
            },
            cert: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}-key.pem")),
            ca: self.path("ca.pem"),
        }
    }

    fn load(&self, name: &str) -> Result<Tls, TlsInvalid> {
        Tls::load(
            self.files(name),
            at(vec![("listen", "127.0.0.1".to_owned())]),
        )
    }

    fn refused(&self, name: &str) -> String {
        self.load(name).unwrap_err().to_string()
    }
}

/// The parameters of an authority, with a unique name.
fn signer(limits: &[ExtendedKeyUsagePurpose]) -> (CertificateParams, KeyPair) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.extended_key_usages = limits.to_vec();
    let key = KeyPair::generate().unwrap();
    let name = format!("{:?}", key.public_key_raw());
    params.distinguished_name.push(DnType::CommonName, name);
    (params, key)
}

#[test]
fn a_certificate_that_peers_or_clients_would_refuse_is_refused_with_the_reason() {
    let folder = Folder::new();
    assert!(folder.load("node").is_ok());
    folder.issue("old", &BOTH, |params| {
        params.not_after = date_time_ymd(2020, 2, 1);
    });
    let expired = folder.refused("old");
    assert!(
        expired.contains("it expired at 2020-02-01 00:00:00 UTC"),
        "{expired}"
    );
    folder.issue("early", &BOTH, |params| {
        params.not_before = date_time_ymd(2400, 1, 1);
    });
    assert!(folder.refused("early").contains("it is not valid before"));
    folder.issue("client", &[ClientAuth], |_| {});
    assert!(folder.refused("client").contains("serverAuth"));
    folder.issue("server", &[ServerAuth], |_| {});
    assert!(folder.refused("server").contains("clientAuth"));
    folder.issue("no-usage", &[], |_| {});
    assert!(folder.refused("no-usage").contains("serverAuth"));
    let elsewhere = vec![("advertise", "flo-1".to_owned())];
    let other = Tls::load(folder.files("node"), at(elsewhere)).unwrap_err();
    assert!(
        other
            .to_string()
            .contains("to be for flo-1, the node's host in `advertise`")
    );
    assert!(other.hint().contains("--host flo-1"));
    let only = |clients| NodeTlsFiles {
        clients,
        peers: None,
    };
    let mixed = TlsFiles {
        key: folder.path("server-key.pem"),
        ..folder.three_files("node")
    };
    let mixed = Tls::load(only(mixed), at(Vec::new())).unwrap_err();
    assert!(matches!(mixed, TlsInvalid::KeyMismatch { .. }), "{mixed}");
    let gone = TlsFiles {
        ca: folder.path("gone.pem"),
        ..folder.three_files("node")
    };
    let gone = Tls::load(only(gone), at(Vec::new())).unwrap_err();
    assert!(matches!(gone, TlsInvalid::Unreadable { .. }), "{gone}");
    let others = Folder::new();
    fs::copy(others.path("ca.pem"), folder.path("ca.pem")).unwrap();
    assert!(
        folder
            .refused("node")
            .contains("to be signed by an authority")
    );
    folder.write("ca.pem", "no PEM");
    assert!(folder.refused("node").contains("it holds none"));
}

#[test]
fn new_files_are_loaded_when_they_are_valid_and_only_then() {
    let folder = Folder::new();
    let tls = folder.load("node").unwrap();
    let before = tls.expiry_seconds();
    assert!(!tls.refresh().unwrap(), "nothing is new");
    folder.issue("node", &BOTH, |params| {
        params.not_after = date_time_ymd(2020, 2, 1);
    });
    assert!(matches!(tls.refresh(), Err(TlsInvalid::Expired { .. })));
    assert_eq!(tls.expiry_seconds(), before);
    folder.issue("node", &BOTH, |params| {
        params.not_after = date_time_ymd(2400, 1, 1);
    });
    assert!(tls.refresh().unwrap());
    assert!(!tls.refresh().unwrap(), "it has been loaded");
    assert_eq!(tls.expiry_seconds(), 13_569_465_600);
    fs::remove_file(folder.path("ca.pem")).unwrap();
    assert!(tls.refresh().is_err());
    assert_eq!(tls.expiry_seconds(), 13_569_465_600);
}

/// The configuration of a client that has this certificate, or none, and trusts the folder's
/// authority.
fn somebody(folder: &Folder, name: Option<&str>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(folder.authority.der().clone()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots);
    let Some(name) = name else {
        return Arc::new(builder.with_no_client_auth());
    };
    let (chain, key) = identity(folder, name);
    Arc::new(builder.with_client_auth_cert(chain, key).unwrap())
}

/// The configuration of a server that has this certificate and accepts any client.
fn anybody(folder: &Folder, name: &str) -> Arc<ServerConfig> {
    let (chain, key) = identity(folder, name);
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth();
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

fn identity(folder: &Folder, name: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let files = folder.three_files(name);
    let chain = CertificateDer::pem_file_iter(files.cert).unwrap();
    let key = PrivateKeyDer::from_pem_file(files.key).unwrap();
    (chain.map(Result::unwrap).collect(), key)
}

/// Makes the node connect to a test server, and returns the node's result.
async fn dial(node: &Arc<Tls>, port: Port, config: Arc<ServerConfig>) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        // Kept until the node has decided.
        TlsAcceptor::from(config).accept(stream).await.ok()
    });
    let tls = node.clone();
    let dialer = Dialer::new(tls, port);
    let stream = TcpStream::connect(address).await.unwrap();
    let handshake_result = dialer.handshake("127.0.0.1", stream).await;
    let _answered = answering.await.unwrap();
    match handshake_result {
        Ok(_) => Ok(()),
        Err(error) => Err(*error.into_inner().unwrap().downcast().unwrap()),
    }
}

/// Connects to a port of a node, and returns the result of the other side or of this one.
async fn knock(port: Port, node: &Arc<Tls>, config: Arc<ClientConfig>) -> Result<(), Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let tls = node.clone();
    let serving = tokio::spawn(async move {
        let sockets = NodeSockets {
            tls: Some(tls),
            port,
            admission: Admission::new(Bounds::of(port)),
            handshakes: Handle::current(),
        };
        let mut arriving = sockets.accept(listener);
        while let Some(Ok(mut stream)) = arriving.next().await {
            stream.write_all(b"!").await.unwrap();
        }
    });
    let heard = async {
        let stream = TcpStream::connect(address).await?;
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let mut stream = TlsConnector::from(config).connect(name, stream).await?;
        stream.read_u8().await
    };
    let heard = heard.await;
    serving.abort();
    match heard {
        Ok(_) => Ok(()),
        Err(error) => Err(*error.into_inner().unwrap().downcast().unwrap()),
    }
}

#[tokio::test]
async fn nodes_are_let_in_everywhere_clients_where_clients_are_and_anyone_over_http() {
    let folder = Folder::new();
    folder.issue("client", &[ClientAuth], |_| {});
    folder.issue("no-usage", &[], |_| {});
    folder.issue("server", &[ServerAuth], |_| {});
    let node = Arc::new(folder.load("node").unwrap());
    let alert = |alert| Err(Error::AlertReceived(alert));
    let unfit = AlertDescription::UnsupportedCertificate;
    let cases = [
        (Port::Peers, Some("node"), Ok(())),
        (Port::Clients, Some("node"), Ok(())),
        (Port::Clients, Some("client"), Ok(())),
        (Port::Http, None, Ok(())),
        (Port::Admin, None, Ok(())),
        (Port::Admin, Some("client"), Ok(())),
        (Port::Admin, Some("server"), alert(unfit)),
        (Port::Peers, Some("client"), alert(unfit)),
        (Port::Peers, Some("no-usage"), alert(unfit)),
        (Port::Peers, Some("server"), alert(unfit)),
        (Port::Clients, Some("server"), alert(unfit)),
        (
            Port::Peers,
            None,
            alert(AlertDescription::CertificateRequired),
        ),
        (
            Port::Clients,
            None,
            alert(AlertDescription::CertificateRequired),
        ),
    ];
    for (port, name, expected) in cases {
        let found = knock(port, &node, somebody(&folder, name)).await;
        assert_eq!(found, expected, "{name:?} at {port:?}");
    }
}

#[tokio::test]
async fn peers_can_have_another_authority_than_clients() {
    let (clients, peers) = (Folder::new(), Folder::new());
    peers.issue("node", &BOTH, |params| {
        params.not_after = date_time_ymd(2300, 1, 1);
    });
    let files = NodeTlsFiles {
        peers: Some(peers.three_files("node")),
        ..clients.files("node")
    };
    let of_clients = TlsRequirements {
        peer_hosts: vec![("peers", "127.0.0.1".to_owned())],
        ..at(vec![("listen", "127.0.0.1".to_owned())])
    };
    let node = Arc::new(Tls::load(files.clone(), of_clients).unwrap());
    assert_eq!(node.expiry_seconds(), 10_413_792_000, "the first of both");
    let untrusted = || Err(Error::AlertReceived(AlertDescription::UnknownCA));
    // A caller trusts the other side's authority, and shows its certificate.
    let caller = |trusted: &Folder, own: &Folder| {
        for end in [".pem", "-key.pem"] {
            let name = format!("node{end}");
            fs::copy(own.path(&name), trusted.path(&format!("shown{end}"))).unwrap();
        }
        somebody(trusted, Some("shown"))
    };
    let cases = [
        (Port::Peers, caller(&peers, &peers), Ok(())),
        (Port::Peers, caller(&peers, &clients), untrusted()),
        (Port::Clients, caller(&clients, &clients), Ok(())),
        (Port::Clients, caller(&clients, &peers), untrusted()),
        (Port::Http, somebody(&clients, None), Ok(())),
    ];
    for (port, config, expected) in cases {
        assert_eq!(knock(port, &node, config).await, expected, "{port:?}");
    }
    assert_eq!(
        dial(&node, Port::Peers, anybody(&peers, "node")).await,
        Ok(())
    );
    let refused = dial(&node, Port::Peers, anybody(&clients, "node")).await;
    assert!(refused.is_err(), "a client's authority signs no member");
    let elsewhere = TlsRequirements {
        peer_hosts: vec![("peers", "flo-1".to_owned())],
        ..at(Vec::new())
    };
    let refused = Tls::load(files.clone(), elsewhere).unwrap_err();
    assert!(refused.to_string().contains("in `peers`"), "{refused}");
    fs::remove_file(peers.path("ca.pem")).unwrap();
    let gone = Tls::load(files, at(Vec::new())).unwrap_err();
    assert!(matches!(gone, TlsInvalid::Unreadable { .. }), "{gone}");
}

#[tokio::test]
async fn a_nodes_certificate_must_be_valid_for_a_server_and_a_peers_for_a_client_too() {
    let folder = Folder::new();
    folder.issue("server", &[ServerAuth], |_| {});
    folder.issue("no-usage", &[], |_| {});
    let node = Arc::new(folder.load("node").unwrap());
    let unfit = || Err(Error::InvalidCertificate(CertificateError::InvalidPurpose));
    let cases = [
        (Port::Peers, "node", Ok(())),
        (Port::Clients, "node", Ok(())),
        (Port::Clients, "server", Ok(())),
        (Port::Peers, "server", unfit()),
        (Port::Peers, "no-usage", unfit()),
        (Port::Clients, "no-usage", unfit()),
    ];
    for (port, name, expected) in cases {
        let found = dial(&node, port, anybody(&folder, name)).await;
        assert_eq!(found, expected, "{name:?} at {port:?}");
    }
    folder.issue("client", &[ClientAuth], |_| {});
    let client = dial(&node, Port::Clients, anybody(&folder, "client")).await;
    assert!(
        matches!(client, Err(Error::InvalidCertificate(_))),
        "{client:?}"
    );
}

#[tokio::test]
async fn an_authority_in_between_names_no_usage_or_limits_those_that_it_signs() {
    let folder = Folder::new();
    folder.issue_through(&[], "far", &BOTH);
    folder.issue_through(&[], "client", &[ClientAuth]);
    folder.issue_through(&[], "no-usage", &[]);
    folder.issue_through(&BOTH, "named", &BOTH);
    folder.issue_through(&[ServerAuth], "limited", &BOTH);
    assert!(folder.load("named").is_ok());
    assert!(folder.refused("no-usage").contains("serverAuth"));
    assert!(folder.refused("limited").contains("clientAuth"));
    let node = Arc::new(folder.load("far").unwrap());
    let unfit = || {
        Err(Error::AlertReceived(
            AlertDescription::UnsupportedCertificate,
        ))
    };
    let cases = [
        (Port::Peers, "far", Ok(())),
        (Port::Peers, "named", Ok(())),
        (Port::Clients, "client", Ok(())),
        (Port::Peers, "client", unfit()),
        (Port::Clients, "no-usage", unfit()),
        (Port::Peers, "limited", unfit()),
    ];
    for (port, name, expected) in cases {
        let found = knock(port, &node, somebody(&folder, Some(name))).await;
        assert_eq!(found, expected, "{name:?} at {port:?}");
    }
    for name in ["far", "named"] {
        let found = dial(&node, Port::Peers, anybody(&folder, name)).await;
        assert_eq!(found, Ok(()), "{name:?}");
    }
    let refused = dial(&node, Port::Clients, anybody(&folder, "no-usage")).await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn another_authority_is_not_trusted_until_the_bundle_has_it() {
    let (folder, other) = (Folder::new(), Folder::new());
    let node = Arc::new(folder.load("node").unwrap());
    // A client that trusts the node's authority, with a certificate of another one.
    for name in ["node.pem", "node-key.pem"] {
        fs::copy(other.path(name), folder.path(&format!("other-{name}"))).unwrap();
    }
    fs::rename(
        folder.path("other-node-key.pem"),
        folder.path("other-key.pem"),
    )
    .unwrap();
    fs::rename(folder.path("other-node.pem"), folder.path("other.pem")).unwrap();
    let knocking = || knock(Port::Peers, &node, somebody(&folder, Some("other")));
    let refused = knocking().await;
    let unknown = AlertDescription::UnknownCA;
    assert_eq!(refused, Err(Error::AlertReceived(unknown)));
    let both = [folder.authority.pem(), other.authority.pem()].concat();
    folder.write("ca.pem", &both);
    assert!(node.refresh().unwrap());
    assert_eq!(knocking().await, Ok(()));
}

/// What is logged about a caller that the node refuses at its peer port.
async fn refused_connection<F: Future<Output = ()> + Send + 'static>(
    node: &Tls,
    come: impl FnOnce(TcpStream) -> F,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let coming = tokio::spawn(come(TcpStream::connect(address).await.unwrap()));
    let (stream, _) = listener.accept().await.unwrap();
    let error = node.handshake(Port::Peers, stream).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData, "it is logged");
    coming.await.unwrap();
    words(&error, Port::Peers)
}

#[tokio::test]
async fn every_refused_connection_is_logged_with_its_reason() {
    let (folder, other) = (Folder::new(), Folder::new());
    folder.issue("old", &BOTH, |params| {
        params.not_after = date_time_ymd(2020, 2, 1);
    });
    let node = folder.load("node").unwrap();
    let plain = refused_connection(&node, |mut stream| async move {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        stream.write_all(preface).await.unwrap();
        // Until the node has hung up, however it does so.
        let _ = stream.read_to_end(&mut Vec::new()).await;
    });
    assert!(plain.await.contains("it does not use TLS"));
    // A client that trusts the node's authority, with a certificate of another one.
    for name in ["node.pem", "node-key.pem"] {
        let to = name.replace("node", "other");
        fs::copy(other.path(name), folder.path(&to)).unwrap();
    }
    let cases = [
        (None, "it presents no certificate"),
        (Some("other"), "an authority that is not in `tls_ca`"),
        (
            Some("old"),
            "has expired: it was valid until 2020-02-01 00:00:00 UTC",
        ),
    ];
    for (name, expected) in cases {
        let config = somebody(&folder, name);
        let told = refused_connection(&node, |stream| async move {
            let host = ServerName::try_from("127.0.0.1").unwrap();
            // With TLS 1.3, the client considers itself accepted until it reads.
            if let Ok(mut stream) = TlsConnector::from(config).connect(host, stream).await {
                let _ = stream.read_u8().await;
            }
        });
        let told = told.await;
        assert!(told.contains(expected), "{name:?}: {told}");
    }
}

#[test]
fn the_subject_of_a_certificate_is_its_first_uri_or_else_its_first_name() {
    let folder = Folder::new();
    let subject = |names: &[SanType]| {
        folder.issue("client", &[ClientAuth], |params| {
            params.subject_alt_names = names.to_vec();
            params.not_after = date_time_ymd(2100, 1, 1);
        });
        let pem = fs::read(folder.path("client.pem")).unwrap();
        let certificate = CertificateDer::from_pem_slice(&pem).unwrap();
        super::caller::bound_actor(&certificate)
    };
    let uri = |text: &str| SanType::URI(text.try_into().unwrap());
    let dns = |text: &str| SanType::DnsName(text.try_into().unwrap());
    let text = |names: &[SanType]| subject(names).map(|bound| bound.subject.to_string());
    let expected = Some("cert:uri:spiffe://shop/a".to_owned());
    assert_eq!(
        text(&[dns("till"), uri("spiffe://shop/b"), uri("spiffe://shop/a")]),
        expected
    );
    assert_eq!(
        text(&[dns("till"), dns("bar")]),
        Some("cert:dns:bar".to_owned())
    );
    // A name that is too long is none.
    let long = format!("spiffe://a{}", "x".repeat(256));
    assert_eq!(
        text(&[uri(&long), dns("till")]),
        Some("cert:dns:till".to_owned())
    );
    assert_eq!(text(&[]), None);
    let ends_at_ms = subject(&[dns("till")]).map(|bound| bound.ends_at_ms);
    assert_eq!(ends_at_ms, Some(4_102_444_800_000));
}
