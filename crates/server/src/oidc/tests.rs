//! Issuers that rotate their keys, are away, or answer something else.

use super::*;
use crate::config::OidcIssuer;
use crate::limits::{OIDC_KEYS_FRESH, OIDC_KEYS_STALE_MAX, OIDC_REFETCH_INTERVAL};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{CertificateParams, KeyPair as CertificateKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::AtomicUsize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::version::TLS13;
use tokio_util::sync::DropGuard;
use tokio_util::task::AbortOnDropHandle;

const DISCOVERY: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/keys";
const NOW_MS: u64 = 1_800_000_000_000;
const EXPIRES_AT: u64 = NOW_MS / 1_000 + 600;

/// A key of an issuer.
struct Signer {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap();
        Self { id, pair }
    }

    fn jwk(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        json!({"kty": "EC", "crv": "P-256", "kid": self.id, "x": x, "y": y})
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": self.id}).to_string();
        let parts = [header, claims.to_string()].map(|part| URL_SAFE_NO_PAD.encode(part));
        let message = parts.join(".");
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.unwrap().as_ref());
        format!("{message}.{signature}")
    }
}

/// An HTTP server on this machine. It answers 503 to what it has no answer for.
struct LocalServer {
    address: SocketAddr,
    answers: Arc<Mutex<BTreeMap<String, String>>>,
    requests: Arc<AtomicUsize>,
    _serving: AbortOnDropHandle<()>,
}

impl LocalServer {
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let answers: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
        let requests: Arc<AtomicUsize> = Arc::default();
        let shared = (answers.clone(), requests.clone());
        let serving = tokio::spawn(async move {
            loop {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                match &tls {
                    None => answer(stream, &shared.0, &shared.1).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            answer(stream, &shared.0, &shared.1).await;
                        }
                    }
                }
            }
        });
        Self {
            address,
            answers,
            requests,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// Answers a path with this body, or with a whole response that begins with `HTTP/1.1`.
    fn set(&self, path: &str, answer: impl Into<String>) {
        let mut answers = self.answers.lock().unwrap();
        answers.insert(path.to_owned(), answer.into());
    }

    fn set_keys(&self, signers: &[&Signer]) {
        let keys: Vec<Value> = signers.iter().map(|signer| signer.jwk()).collect();
        self.set(KEYS, json!({"keys": keys}).to_string());
    }

    fn set_discovery(&self, issuer: &str, keys: &str) {
        let document = json!({"issuer": issuer, "jwks_uri": keys});
        self.set(DISCOVERY, document.to_string());
    }

    /// Answers nothing more.
    fn leave(&self) {
        self.answers.lock().unwrap().clear();
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn answer(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    answers: &Mutex<BTreeMap<String, String>>,
    requests: &AtomicUsize,
) {
    let mut stream = BufReader::new(stream);
    let mut first = String::new();
    let _ = stream.read_line(&mut first).await;
    let mut line = String::new();
    while stream.read_line(&mut line).await.is_ok_and(|read| read > 2) {
        line.clear();
    }
    requests.fetch_add(1, Ordering::Relaxed);
    let path = first.split(' ').nth(1).unwrap_or_default();
    let body = answers.lock().unwrap().get(path).cloned();
    let response = match body {
        Some(response) if response.starts_with("HTTP/1.1") => response,
        Some(body) => format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ),
        None => "HTTP/1.1 503 Unavailable\r\ncontent-length: 0\r\n\r\n".to_owned(),
    };
    let _ = stream.write_all(response.as_bytes()).await;
    let _ = stream.shutdown().await;
}

/// The configuration of an issuer.
fn config(changes: &Value) -> OidcIssuer {
    let mut all = json!({"name": "corp", "issuer": "https://corp.example", "audience": "flotilla"});
    for (key, value) in changes.as_object().unwrap() {
        all[key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

fn claims(config: &OidcIssuer) -> Value {
    json!({
        "iss": config.issuer, "aud": "flotilla", "sub": "ada", "exp": EXPIRES_AT,
        "groups": ["editors", "admins"],
    })
}

/// A node's issuers, whose keys are kept fresh.
struct Running {
    config: OidcIssuer,
    issuers: Arc<Issuers>,
    _stop: DropGuard,
}

impl Running {
    async fn start(config: OidcIssuer) -> Result<Self, OidcKeysInvalid> {
        let issuers = Arc::new(Issuers::load(std::slice::from_ref(&config)).await?);
        let shutdown = CancellationToken::new();
        drop(issuers.start(&shutdown));
        Ok(Self {
            config,
            issuers,
            _stop: shutdown.drop_guard(),
        })
    }

    async fn of_server(server: &LocalServer) -> Self {
        let config = config(&json!({"jwks_url": server.url(KEYS)}));
        Self::start(config).await.unwrap()
    }

    /// The subject that a token of the signer proves, or the code of its refusal.
    async fn verify(&self, signer: &Signer) -> Result<String, &'static str> {
        self.verify_text(&signer.sign(&claims(&self.config))).await
    }

    async fn verify_text(&self, token: &str) -> Result<String, &'static str> {
        let token = ShownToken::of(token).unwrap();
        let deadline = Instant::now() + Duration::from_mins(1);
        let verified = self.issuers.verify(&token, NOW_MS, deadline).await;
        let actor = verified.map_err(|refusal| refusal.reason())?;
        assert_eq!(self.issuers.remembered(&token, NOW_MS), Some(actor.clone()));
        Ok(actor.subject.to_string())
    }

    /// Fetches the keys now.
    async fn fetch(&self) -> Result<bool, KeyFetchError> {
        self.issuers.issuers[0].keys.attempt().await
    }

    /// Waits until an attempt to fetch the keys has ended, after this many.
    async fn fetched_after(&self, attempts: u64) {
        let fetches = &self.issuers.issuers[0].keys.fetches;
        let count =
            || fetches.succeeded.load(Ordering::Relaxed) + fetches.failed.load(Ordering::Relaxed);
        while count() <= attempts {
            tokio::task::yield_now().await;
        }
    }

    fn attempts(&self) -> u64 {
        let fetches = &self.issuers.issuers[0].keys.fetches;
        fetches.succeeded.load(Ordering::Relaxed) + fetches.failed.load(Ordering::Relaxed)
    }
}

/// Lets time pass. The clock does not stay paused, since it would run ahead of the network.
async fn pass(duration: Duration) {
    tokio::time::pause();
    tokio::time::advance(duration).await;
    tokio::time::resume();
}

fn is_ada(verified: &Result<String, &'static str>) -> bool {
    verified.as_deref() == Ok("oidc:corp:sub:ada")
}

#[tokio::test]
async fn the_tokens_of_a_rotated_key_are_accepted_within_one_fetch() {
    let (old, new, newer) = (Signer::new("k1"), Signer::new("k2"), Signer::new("k3"));
    let server = LocalServer::start(None).await;
    server.set_keys(&[&old]);
    let node = Running::of_server(&server).await;
    assert!(is_ada(&node.verify(&old).await));
    assert_eq!(server.requests(), 1);
    // The next key appears, and then signs. The old one is still valid.
    server.set_keys(&[&old, &new]);
    assert!(is_ada(&node.verify(&new).await));
    assert!(is_ada(&node.verify(&old).await));
    assert_eq!(server.requests(), 2);
    // Unknown keys do not make the node fetch more often.
    for _ in 0..3 {
        assert_eq!(node.verify(&newer).await, Err("credential_unknown"));
    }
    assert_eq!(server.requests(), 2);
    // Once the old key is gone, so are its tokens, those that were verified before as well.
    let token = old.sign(&claims(&node.config));
    assert!(is_ada(&node.verify_text(&token).await));
    server.set_keys(&[&new, &newer]);
    pass(OIDC_REFETCH_INTERVAL).await;
    assert!(is_ada(&node.verify(&newer).await));
    assert_eq!(server.requests(), 3);
    let shown = ShownToken::of(&token).unwrap();
    assert_eq!(node.issuers.remembered(&shown, NOW_MS), None);
    assert_eq!(node.verify_text(&token).await, Err("credential_unknown"));
}

#[tokio::test]
async fn keys_are_fetched_again_after_a_while() {
    let (old, new) = (Signer::new("k1"), Signer::new("k2"));
    let server = LocalServer::start(None).await;
    server.set_keys(&[&old]);
    let node = Running::of_server(&server).await;
    assert!(is_ada(&node.verify(&old).await));
    server.set_keys(&[&new]);
    let attempts = node.attempts();
    pass(OIDC_KEYS_FRESH).await;
    node.fetched_after(attempts).await;
    assert!(is_ada(&node.verify(&new).await));
    assert_eq!(server.requests(), 2);
    // For a token whose key it does not know, the node looks once more.
    assert_eq!(node.verify(&old).await, Err("credential_unknown"));
    assert_eq!(server.requests(), 3);
}

#[tokio::test]
async fn an_issuer_that_is_away_does_not_stop_its_callers() {
    let (signer, unknown) = (Signer::new("k1"), Signer::new("k2"));
    let server = LocalServer::start(None).await;
    let node = Running::of_server(&server).await;
    // Its keys were never fetched.
    assert_eq!(node.verify(&signer).await, Err("identity_unavailable"));
    server.set_keys(&[&signer]);
    assert!(node.fetch().await.unwrap());
    assert!(is_ada(&node.verify(&signer).await));
    server.leave();
    let attempts = node.attempts();
    pass(OIDC_KEYS_FRESH).await;
    node.fetched_after(attempts).await;
    assert!(is_ada(&node.verify(&signer).await));
    // The issuer may have this key by now.
    assert_eq!(node.verify(&unknown).await, Err("identity_unavailable"));
    let attempts = node.attempts();
    pass(OIDC_KEYS_STALE_MAX).await;
    node.fetched_after(attempts).await;
    assert_eq!(node.verify(&signer).await, Err("identity_unavailable"));
}

#[tokio::test]
async fn a_token_is_remembered_until_it_ends() {
    let signer = Signer::new("k1");
    let server = LocalServer::start(None).await;
    server.set_keys(&[&signer]);
    let node = Running::of_server(&server).await;
    let text = signer.sign(&claims(&node.config));
    assert!(is_ada(&node.verify_text(&text).await));
    let token = ShownToken::of(&text).unwrap();
    let actor = node.issuers.remembered(&token, NOW_MS).unwrap();
    let groups: Vec<String> = actor.groups.iter().map(ToString::to_string).collect();
    assert_eq!(
        groups,
        ["oidc:corp:group:admins", "oidc:corp:group:editors"]
    );
    let ends_at_ms = (EXPIRES_AT + 60) * 1_000;
    assert_eq!(actor.ends_at_ms, ends_at_ms);
    assert!(node.issuers.remembered(&token, ends_at_ms - 1).is_some());
    assert!(node.issuers.remembered(&token, ends_at_ms).is_none());
    let deadline = Instant::now() + Duration::from_mins(1);
    let expired = node.issuers.verify(&token, ends_at_ms, deadline).await;
    assert_eq!(expired.unwrap_err().reason(), "credential_expired");
}

#[tokio::test]
async fn each_fault_of_a_token_has_its_code_and_is_counted() {
    let signer = Signer::new("k1");
    let server = LocalServer::start(None).await;
    server.set_keys(&[&signer]);
    let node = Running::of_server(&server).await;
    for (name, value, code) in [
        ("iss", json!("https://other.example"), "credential_unknown"),
        ("iss", json!(7), "credential_malformed"),
        ("aud", json!("other"), "credential_unknown"),
        ("sub", json!(""), "credential_malformed"),
        ("exp", json!(1), "credential_expired"),
    ] {
        let mut claims = claims(&node.config);
        claims[name] = value;
        let refused = node.verify_text(&signer.sign(&claims)).await;
        assert_eq!(refused, Err(code), "{claims}");
    }
    assert!(is_ada(&node.verify(&signer).await));
    let figures: Vec<_> = node.issuers.figures().collect();
    let expected = [
        ("accepted", 1),
        ("malformed", 1),
        ("expired", 1),
        ("unknown", 1),
        ("unavailable", 0),
    ];
    assert_eq!(figures[0].tokens, expected);
    assert_eq!(figures[0].fetches, [("succeeded", 1), ("failed", 0)]);
    assert!(figures[0].keys_age.is_some());
}

#[tokio::test]
async fn an_issuer_is_discovered_by_its_url() {
    let signer = Signer::new("k1");
    let server = LocalServer::start(None).await;
    let issuer = server.url("");
    let node = Running::start(config(&json!({"issuer": issuer})))
        .await
        .unwrap();
    let keys = server.url(KEYS);
    let other_port = server.address.port().wrapping_add(1);
    server.set_keys(&[&signer]);
    for (issuer, keys) in [
        ("https://other.example", keys.as_str()),
        (&issuer, "http://keys.example/"),
        (&issuer, &format!("http://127.0.0.1:{other_port}/keys")),
        // A name of this machine alone permits no other addresses.
        (&issuer, "https://10.0.0.1/keys"),
        (&issuer, "https://169.254.169.254/keys"),
    ] {
        server.set_discovery(issuer, keys);
        let text = node.fetch().await.unwrap_err().to_string();
        assert!(text.contains(", but"), "{text}");
        let refused = node.verify(&signer).await;
        assert_eq!(refused, Err("identity_unavailable"), "{keys}");
    }
    server.set_discovery(&issuer, &keys);
    assert!(node.fetch().await.unwrap());
    assert!(is_ada(&node.verify(&signer).await));
}

#[tokio::test]
async fn a_response_that_is_no_key_set_is_refused() {
    let signer = Signer::new("k1");
    let server = LocalServer::start(None).await;
    let elsewhere = LocalServer::start(None).await;
    elsewhere.set_keys(&[&signer]);
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        elsewhere.url(KEYS)
    );
    let long = format!("{{\"keys\": [\"{}\"]}}", "x".repeat(300 << 10));
    let headers = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "x".repeat(100 << 10));
    for answer in [
        redirect,
        long,
        headers,
        "<html>".to_owned(),
        "nothing".to_owned(),
        "{\"keys\": []}".to_owned(),
    ] {
        server.set(KEYS, answer.as_str());
        let fetcher = KeyFetcher::new(
            &config(&json!({})),
            crate::config::KeySource::Url(KeyUrl::parse(&server.url(KEYS)).unwrap()),
        );
        let fetched = fetcher.unwrap().fetch().await;
        let text = fetched.map(drop).unwrap_err().to_string();
        assert!(text.contains(", but"), "{text}");
    }
    assert_eq!(elsewhere.requests(), 0);
}

#[tokio::test]
async fn keys_are_fetched_with_tls_from_servers_of_the_given_authority() {
    let key = CertificateKey::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ca_file = folder.path().join("ca.pem");
    std::fs::write(&ca_file, certificate.pem()).unwrap();
    let own = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let tls = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], own)
        .unwrap();
    let server = LocalServer::start(Some(TlsAcceptor::from(Arc::new(tls)))).await;
    let signer = Signer::new("k1");
    server.set_keys(&[&signer]);
    let url = format!("https://localhost:{}{KEYS}", server.address.port());
    let trusting = config(&json!({"jwks_url": url, "ca_file": ca_file}));
    assert!(is_ada(
        &Running::start(trusting)
            .await
            .unwrap()
            .verify(&signer)
            .await
    ));
    let strict = Running::start(config(&json!({"jwks_url": url})))
        .await
        .unwrap();
    assert_eq!(strict.verify(&signer).await, Err("identity_unavailable"));
    assert_eq!(server.requests(), 1);
    std::fs::write(&ca_file, "no certificate").unwrap();
    let broken = Running::start(config(&json!({"jwks_url": url, "ca_file": ca_file}))).await;
    assert!(broken.is_err());
}

#[tokio::test]
async fn keys_in_a_file_are_read_again_and_kept_if_it_is_broken() {
    let (old, new) = (Signer::new("k1"), Signer::new("k2"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let write = |keys: &[Value]| std::fs::write(&file, json!({"keys": keys}).to_string()).unwrap();
    let config = config(&json!({"jwks_file": file}));
    write(&[]);
    let refused = Running::start(config.clone())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(refused.contains("issuer `corp`"), "{refused}");
    write(&[old.jwk()]);
    let node = Running::start(config).await.unwrap();
    assert!(is_ada(&node.verify(&old).await));
    std::fs::write(&file, "broken").unwrap();
    let attempts = node.attempts();
    pass(crate::limits::OIDC_FILE_INTERVAL).await;
    node.fetched_after(attempts).await;
    assert!(is_ada(&node.verify(&old).await));
    write(&[new.jwk()]);
    assert!(is_ada(&node.verify(&new).await));
    assert_eq!(node.verify(&old).await, Err("credential_unknown"));
}
