//! Callers with the tokens of an identity provider (X12, X13).

use crate::files::fixture;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flotilla_tests::{Cluster, Flo, Scratch, TIMEOUT, get, wait_until};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

const ADA: &str = "oidc:corp:sub:ada";
const EDITORS: &str = "oidc:corp:group:editors";

/// A key of the identity provider.
struct Signer {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("randomness");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).expect("a key");
        Self { id, pair }
    }

    fn jwk(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        let (x, y) = (URL_SAFE_NO_PAD.encode(x), URL_SAFE_NO_PAD.encode(y));
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "kid": self.id, "x": x, "y": y})
    }

    fn sign(&self, claims: &Value) -> String {
        let header = json!({"alg": "ES256", "kid": self.id}).to_string();
        let parts = [header, claims.to_string()].map(|part| URL_SAFE_NO_PAD.encode(part));
        let message = parts.join(".");
        let signature = self.pair.sign(&SystemRandom::new(), message.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.expect("randomness").as_ref());
        format!("{message}.{signature}")
    }
}

/// An identity provider on this machine, which serves its discovery document and its keys until it leaves.
struct Provider {
    url: String,
    keys: Arc<Mutex<Option<Value>>>,
}

impl Provider {
    fn start(signers: &[&Signer]) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let provider = Self {
            url: url.clone(),
            keys: Arc::default(),
        };
        provider.set_keys(signers);
        let keys = provider.keys.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let keys = keys.lock().expect("no thread has panicked").clone();
                // The node is gone if this fails.
                let _ = answer(&stream, &url, keys.as_ref());
            }
        });
        provider
    }

    fn set_keys(&self, signers: &[&Signer]) {
        let keys: Vec<Value> = signers.iter().map(|signer| signer.jwk()).collect();
        *self.keys.lock().expect("no thread has panicked") = Some(json!({"keys": keys}));
    }

    fn leave(&self) {
        *self.keys.lock().expect("no thread has panicked") = None;
    }

    fn claims(&self) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let expires_at = now.expect("after 1970").as_secs() + 3_600;
        json!({
            "iss": self.url, "aud": "flotilla", "sub": "ada", "exp": expires_at,
            "groups": ["editors", "staff"],
        })
    }
}

fn answer(mut stream: &TcpStream, url: &str, keys: Option<&Value>) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    while lines
        .next()
        .transpose()?
        .is_some_and(|line| !line.is_empty())
    {}
    let document = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
    let body = match keys {
        None => return Ok(()),
        Some(keys) if first.starts_with("GET /keys ") => keys.to_string(),
        Some(_) => document.to_string(),
    };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Three nodes of a closed cluster that trust a provider.
struct Access {
    provider: Provider,
    cluster: Cluster,
    root: Flo,
    _configuration: Scratch,
}

impl Access {
    fn start(signers: &[&Signer]) -> Self {
        let provider = Provider::start(signers);
        let configuration = Scratch::new();
        let file = configuration.path("flo.toml");
        let text = format!(
            "[[oidc]]\nname = \"corp\"\nissuer = \"{}\"\naudience = \"flotilla\"\n",
            provider.url
        );
        fs::write(&file, text).expect("room");
        let file = file.display().to_string();
        let cluster = Cluster::closed_with(&["--config", &file]);
        Self {
            provider,
            root: cluster.flo(),
            cluster,
            _configuration: configuration,
        }
    }

    /// A caller with a token at one node.
    fn caller(&self, id: u64, token: &str) -> Flo {
        Flo::at(self.cluster.node(id).endpoint()).with_token(token)
    }
}

#[test]
fn the_token_of_an_issuer_has_the_rights_of_its_subject_and_of_its_groups() {
    let signer = Signer::new("k1");
    let access = Access::start(&[&signer]);
    let Access {
        provider,
        cluster,
        root,
        ..
    } = &access;
    let token = signer.sign(&provider.claims());
    let ada = access.caller(1, &token);
    let set = ["kv", "set", "k", "v"];
    // It is known, but may do nothing.
    ada.refused(&set).expect(3, "permission_denied");
    let _ = root.text(&["auth", "bind", EDITORS, "--role", "editor"]);
    for id in cluster.ids() {
        let _ = access.caller(id, &token).text(&set);
    }
    let caller = ada.json(&["auth", "whoami"]);
    let subject = &caller["subject"];
    assert_eq!(subject["subject"], ADA);
    assert_eq!(subject["identity"], format!("user:{ADA}"));
    assert_eq!(subject["groups"], json!([EDITORS, "oidc:corp:group:staff"]));
    assert_eq!(subject["bindings"][0]["subject"], EDITORS);
    // Over HTTP, too.
    let bearer = format!("Authorization: Bearer {token}");
    let url = format!("http://{}/v1/auth/whoami", cluster.node(2).http_address());
    let (status, body) = get(&url, &[&bearer]);
    assert!(status == 200 && body.contains(ADA), "{status} {body}");
    let (status, body) = get(&url, &[&format!("{bearer}x")]);
    assert!(
        status == 401 && body.contains("credential_"),
        "{status} {body}"
    );
    // It reads the metrics, which count it.
    let _ = root.text(&["auth", "bind", ADA, "--role", "cluster-viewer", "--cluster"]);
    let url = format!("http://{}/metrics", cluster.node(2).http_address());
    let (_, page) = get(&url, &[&bearer]);
    for sample in [
        "flotilla_oidc_tokens_total{issuer=\"corp\",result=\"accepted\"} ",
        "flotilla_oidc_key_fetches_total{issuer=\"corp\",result=\"succeeded\"} ",
        "flotilla_oidc_keys_age_seconds{issuer=\"corp\"} ",
    ] {
        assert!(page.contains(sample), "{page}");
    }
    // A block refuses the caller, by its subject or by a group.
    for blocked in [ADA, "oidc:corp:group:staff"] {
        let _ = root.text(&["auth", "block", blocked]);
        ada.refused(&set).expect(3, "subject_blocked").says(blocked);
        let _ = root.text(&["auth", "unblock", blocked]);
    }
    let _ = ada.text(&set);
    let mut claims = provider.claims();
    claims["aud"] = json!("other");
    let other = access.caller(1, &signer.sign(&claims));
    other.refused(&set).expect(3, "credential_unknown");
    claims["exp"] = json!(1);
    claims["aud"] = json!("flotilla");
    let expired = access.caller(1, &signer.sign(&claims));
    expired.refused(&set).expect(3, "credential_expired");
}

#[test]
fn an_issuer_rotates_its_keys_and_leaves_while_its_callers_work() {
    let (old, new) = (Signer::new("k1"), Signer::new("k2"));
    let access = Access::start(&[&old]);
    let provider = &access.provider;
    let bind = ["auth", "bind", ADA, "--role", "editor"];
    let _ = access.root.text(&bind);
    let old_token = old.sign(&provider.claims());
    let set = ["kv", "set", "k", "v"];
    let _ = access.caller(1, &old_token).text(&set);
    provider.set_keys(&[&old, &new]);
    let new_token = new.sign(&provider.claims());
    for id in [1, 2] {
        let _ = access.caller(id, &new_token).text(&set);
        let _ = access.caller(id, &old_token).text(&set);
    }
    provider.leave();
    for id in [1, 2] {
        let again = new.sign(&provider.claims());
        for token in [&new_token, &old_token, &again] {
            let _ = access.caller(id, token).text(&set);
        }
    }
    // Whether the provider has this key by now is unknown.
    let unknown = Signer::new("k3").sign(&provider.claims());
    let node = access.cluster.node(3).http_address();
    let bearer = format!("Authorization: Bearer {unknown}");
    let (status, body) = get(&format!("http://{node}/v1/auth/whoami"), &[&bearer]);
    let code = body.contains("identity_unavailable");
    assert!(status == 503 && code, "{status} {body}");
}

#[test]
fn a_watch_ends_when_a_group_of_its_caller_loses_its_binding() {
    let signer = Signer::new("k1");
    let access = Access::start(&[&signer]);
    let root = &access.root;
    let _ = root.text(&["auth", "bind", EDITORS, "--role", "editor"]);
    let ada = access.caller(1, &signer.sign(&access.provider.claims()));
    let _ = ada.text(&["workflow", "create", "-f", &fixture("parked.yaml")]);
    let _ = ada.text(&["workflow", "start", "parked", "--run-id", "watched"]);
    let refusal = thread::scope(|scope| {
        let watch = ["workflow", "history", "watched", "--follow"];
        let watching = scope.spawn(move || ada.refused(&watch));
        wait_until("a node to have the watch", TIMEOUT, || {
            let node = root.json(&["cluster", "inspect", "--node", "1"]);
            let watchers = node["watchers"].as_array();
            match watchers.is_some_and(|rows| !rows.is_empty()) {
                true => Ok(()),
                false => Err("it has no watcher".to_owned()),
            }
        });
        let _ = root.text(&["auth", "unbind", EDITORS]);
        watching.join().expect("it ends")
    });
    refusal.expect(3, "permission_denied");
}

#[test]
fn a_node_does_not_start_with_keys_that_it_cannot_use() {
    let configuration = Scratch::new();
    let keys = configuration.path("keys.json");
    fs::write(&keys, "{}").expect("room");
    let file = configuration.path("flo.toml");
    let start = |lines: &str| {
        let text = format!(
            "[[oidc]]\nname = \"corp\"\nissuer = \"https://a.example\"\naudience = \"flotilla\"\n{lines}"
        );
        fs::write(&file, text).expect("room");
        let (file, data) = (file.display().to_string(), configuration.path("data"));
        let data = data.display().to_string();
        Flo::at("").refused(&["server", "--config", &file, "--data-dir", &data])
    };
    let broken = start(&format!("jwks_file = \"{}\"\n", keys.display()));
    broken
        .expect(2, "server_start_failed")
        .says("issuer `corp`");
    let plain = start("jwks_url = \"http://a.example/keys\"\n");
    plain.expect(2, "server_start_failed").says("`jwks_url`");
    let shared = start("algorithms = [\"HS256\"]\n");
    shared.expect(2, "config_invalid").says("HS256");
}
