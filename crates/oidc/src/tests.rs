//! Each rule for tokens and key sets, with keys that the tests make.

use crate::signer::{Signer, base64url, key_set};
use crate::{
    GROUPS_MAX, KEYS_MAX, KeySet, KeySetInvalid, LEEWAY_SECONDS, Proof, Rules, SignatureAlgorithm,
    TokenFault, TokenInvalid, UnverifiedToken,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const ISSUER: &str = "https://login.acme.example";
const NOW_SECONDS: u64 = 1_800_000_000;
const EXPIRES_AT: u64 = NOW_SECONDS + 600;

fn rules() -> Rules {
    Rules::new(ISSUER, "flotilla")
}

/// The claims of a good token.
fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": "flotilla", "sub": "ada", "exp": EXPIRES_AT,
        "iat": NOW_SECONDS, "nbf": NOW_SECONDS,
    })
}

/// The same, with one claim changed; `null` removes it.
fn claims_with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    let all = claims.as_object_mut().expect("an object");
    match value {
        Value::Null => drop(all.remove(name)),
        value => drop(all.insert(name.to_owned(), value)),
    }
    claims
}

fn verify_at(
    token: &str,
    rules: &Rules,
    keys: &KeySet,
    seconds: u64,
) -> Result<Proof, TokenInvalid> {
    UnverifiedToken::parse(token)?.verify(rules, keys, seconds * 1_000 + 999)
}

fn verify(token: &str, rules: &Rules, keys: &KeySet) -> Result<Proof, TokenInvalid> {
    verify_at(token, rules, keys, NOW_SECONDS)
}

/// The fault and the claim of a refused token.
fn refused(verified: Result<Proof, TokenInvalid>) -> (TokenFault, String) {
    let invalid = verified.expect_err("it is refused");
    assert!(invalid.to_string().contains(", but"), "{invalid}");
    (invalid.fault, invalid.claim.into_owned())
}

/// An issuer with one key, and how it refuses or accepts claims.
struct Issuer {
    signer: Signer,
    keys: KeySet,
}

impl Issuer {
    fn new() -> Self {
        let signer = Signer::p256();
        let keys = key_set(&[signer.jwk("k1")]).expect("a key set");
        Self { signer, keys }
    }

    fn token(&self, claims: &Value) -> String {
        self.signer
            .sign(&json!({"alg": "ES256", "kid": "k1"}), claims)
    }

    fn verify(&self, claims: &Value, rules: &Rules) -> Result<Proof, TokenInvalid> {
        verify(&self.token(claims), rules, &self.keys)
    }
}

#[test]
fn each_algorithm_verifies_and_detects_a_changed_byte() {
    let (rsa, p256, p384, ed) = (
        Signer::rsa(),
        Signer::p256(),
        Signer::p384(),
        Signer::ed25519(),
    );
    let keys = [rsa.jwk("r"), p256.jwk("p"), p384.jwk("q"), ed.jwk("e")];
    let keys = key_set(&keys).expect("a key set");
    let mut rules = rules();
    rules.algorithms.extend([
        SignatureAlgorithm::RS384,
        SignatureAlgorithm::RS512,
        SignatureAlgorithm::PS384,
        SignatureAlgorithm::PS512,
    ]);
    for (algorithm, kid, signer) in [
        ("RS256", "r", &rsa),
        ("RS384", "r", &rsa),
        ("RS512", "r", &rsa),
        ("PS256", "r", &rsa),
        ("PS384", "r", &rsa),
        ("PS512", "r", &rsa),
        ("ES256", "p", &p256),
        ("ES384", "q", &p384),
        ("EdDSA", "e", &ed),
    ] {
        let header = json!({"alg": algorithm, "kid": kid, "typ": "JWT"});
        let token = signer.sign(&header, &claims());
        let proof = verify(&token, &rules, &keys).expect(algorithm);
        assert_eq!((proof.subject.as_str(), proof.groups.len()), ("ada", 0));
        assert_eq!(proof.ends_at_ms, (EXPIRES_AT + LEEWAY_SECONDS) * 1_000);
        let other = signer.sign(&header, &claims_with("sub", json!("eve")));
        let (message, _) = other.rsplit_once('.').expect("three parts");
        let (_, signature) = token.rsplit_once('.').expect("three parts");
        let forged = verify(&format!("{message}.{signature}"), &rules, &keys);
        assert_eq!(
            refused(forged),
            (TokenFault::Unknown, "signature".to_owned())
        );
    }
}

#[test]
fn a_header_that_asks_for_less_or_for_more_is_refused() {
    let issuer = Issuer::new();
    let jwk = issuer.signer.jwk("k1");
    let secret = jwk["x"].as_str().expect("text").to_owned();
    for (header, field) in [
        (json!({"alg": "none"}), "alg"),
        (json!({"alg": "None"}), "alg"),
        (json!({"kid": "k1"}), "alg"),
        (json!({"alg": "HS256", "kid": "k1", "k": secret}), "alg"),
        (json!({"alg": "HS512", "kid": "k1"}), "alg"),
        (
            json!({"alg": "ES256", "kid": "k1", "crit": ["exp"]}),
            "crit",
        ),
        (
            json!({"alg": "ES256", "kid": "k1", "crit": ["b64"], "b64": true}),
            "crit",
        ),
        (json!({"alg": "ES256", "kid": "k1", "b64": false}), "b64"),
        (json!({"alg": "ES256", "kid": "k1", "zip": "DEF"}), "zip"),
        (
            json!({"alg": "ES256", "kid": "k1", "enc": "A128GCM"}),
            "enc",
        ),
        (json!({"alg": "RSA-OAEP", "enc": "A128GCM"}), "enc"),
        (json!({"alg": "RSA-OAEP"}), "alg"),
        (json!({"alg": ["ES256"]}), "alg"),
        (json!({"alg": "ES256", "kid": 7}), "kid"),
    ] {
        let token = issuer.signer.sign(&header, &claims());
        let found = refused(verify(&token, &rules(), &issuer.keys));
        assert_eq!(found, (TokenFault::Malformed, field.to_owned()), "{header}");
    }
}

#[test]
fn keys_and_addresses_that_a_token_names_are_not_used() {
    let (issuer, attacker) = (Issuer::new(), Signer::p256());
    let mut own = attacker.jwk("k1");
    own.as_object_mut().expect("an object").remove("kid");
    let header = json!({
        "alg": "ES256", "kid": "k1", "jwk": own, "jku": "https://eve.example/keys",
        "x5u": "https://eve.example/cert", "x5c": ["AAAA"],
    });
    let forged = verify(&attacker.sign(&header, &claims()), &rules(), &issuer.keys);
    assert_eq!(
        refused(forged),
        (TokenFault::Unknown, "signature".to_owned())
    );
    verify(
        &issuer.signer.sign(&header, &claims()),
        &rules(),
        &issuer.keys,
    )
    .expect("its own key");
}

#[test]
fn what_is_no_signed_token_is_malformed() {
    let issuer = Issuer::new();
    let token = issuer.token(&claims());
    let (message, _) = token.rsplit_once('.').expect("three parts");
    let (header, payload) = message.split_once('.').expect("two parts");
    let text = base64url("text");
    for text in [
        String::new(),
        "eyJ".to_owned(),
        message.to_owned(),
        format!("{token}.{text}"),
        format!("{header}.{payload}.{payload}.{text}.{text}"),
        format!("{header}.{text}.{text}"),
        format!("{header}.{}.{text}", base64url("[]")),
        format!("{header}=.{payload}.{text}"),
        format!("{header}.{payload}.!"),
    ] {
        let found = refused(verify(&text, &rules(), &issuer.keys));
        assert_eq!(found.0, TokenFault::Malformed, "{text}");
    }
    let unsigned = refused(verify(&format!("{message}."), &rules(), &issuer.keys));
    assert_eq!(unsigned, (TokenFault::Unknown, "signature".to_owned()));
}

#[test]
fn each_claim_is_checked() {
    use TokenFault::{Expired, Malformed, Unknown};
    let issuer = Issuer::new();
    let late = NOW_SECONDS + LEEWAY_SECONDS;
    let past = NOW_SECONDS - LEEWAY_SECONDS;
    let day = 24 * 60 * 60;
    for (name, value, expected) in [
        ("iss", Value::Null, Some(Malformed)),
        ("iss", json!([ISSUER]), Some(Malformed)),
        ("iss", json!("https://login.acme.example/"), Some(Unknown)),
        ("aud", Value::Null, Some(Malformed)),
        ("aud", json!(7), Some(Malformed)),
        ("aud", json!(["flotilla", 7]), Some(Malformed)),
        ("aud", json!("Flotilla"), Some(Unknown)),
        ("aud", json!([]), Some(Unknown)),
        ("aud", json!(["shop"]), Some(Unknown)),
        ("aud", json!(["shop", "flotilla"]), None),
        ("sub", Value::Null, Some(Malformed)),
        ("sub", json!(7), Some(Malformed)),
        ("sub", json!(""), Some(Malformed)),
        ("sub", json!("a\u{0}b"), Some(Malformed)),
        ("sub", json!("x".repeat(257)), Some(Malformed)),
        ("sub", json!("x".repeat(256)), None),
        ("exp", Value::Null, Some(Malformed)),
        ("exp", json!(EXPIRES_AT.to_string()), Some(Malformed)),
        ("exp", json!(-1), Some(Malformed)),
        ("exp", json!(past), Some(Expired)),
        ("exp", json!(past + 1), None),
        ("exp", json!(late + day), None),
        ("exp", json!(late + day + 1), Some(Unknown)),
        ("exp", json!(1e300), Some(Malformed)),
        ("exp", json!(1_800_000_600.75), None),
        ("nbf", Value::Null, None),
        ("nbf", json!(late), None),
        ("nbf", json!(late + 1), Some(Unknown)),
        ("nbf", json!(NOW_SECONDS.to_string()), Some(Malformed)),
        ("iat", Value::Null, None),
        ("iat", json!(late + 1), Some(Unknown)),
        ("iat", json!({}), Some(Malformed)),
    ] {
        let text = format!("{name}: {value}");
        let verified = issuer.verify(&claims_with(name, value), &rules());
        match expected {
            None => drop(verified.expect(&text)),
            Some(fault) => assert_eq!(refused(verified), (fault, name.to_owned()), "{text}"),
        }
    }
}

#[test]
fn a_claim_that_is_given_twice_is_refused() {
    let issuer = Issuer::new();
    let header = json!({"alg": "ES256", "kid": "k1"});
    for name in ["iss", "aud", "exp"] {
        let twice = claims()
            .to_string()
            .replacen('{', &format!("{{\"{name}\": \"other\","), 1);
        let token = issuer.signer.sign_text(&header, &twice);
        let found = refused(verify(&token, &rules(), &issuer.keys));
        assert_eq!(found.0, TokenFault::Malformed, "{twice}");
    }
}

#[test]
fn subjects_and_groups_come_from_the_configured_claims() {
    let issuer = Issuer::new();
    let mut claims = claims_with("email", json!("ada@acme.example"));
    claims["realm_access"] = json!({"roles": ["editors", "admins", "editors", "", "a\nb"]});
    let mut rules = rules();
    rules.subject_claim = "email".to_owned();
    rules.groups_claim = "/realm_access/roles".to_owned();
    let proof = issuer.verify(&claims, &rules).expect("a good token");
    assert_eq!(proof.subject, "ada@acme.example");
    assert_eq!(proof.groups, ["admins", "editors"]);
    rules.groups = vec!["edit*".to_owned(), "admin".to_owned()];
    let proof = issuer.verify(&claims, &rules).expect("a good token");
    assert_eq!(proof.groups, ["editors"]);
    claims["realm_access"]["roles"] = json!("editors");
    let proof = issuer.verify(&claims, &rules).expect("a good token");
    assert_eq!(proof.groups, ["editors"]);
    claims["realm_access"]["roles"] = json!(["editors", 7]);
    let found = refused(issuer.verify(&claims, &rules));
    assert_eq!(found, (TokenFault::Malformed, rules.groups_claim));
}

#[test]
fn too_many_groups_are_refused_unless_few_count() {
    let issuer = Issuer::new();
    let names = |count: usize, length: usize| -> Vec<String> {
        (0..count)
            .map(|number| format!("{number:0length$}"))
            .collect()
    };
    let verify = |groups: &[String], rules: &Rules| {
        let claims = claims_with("groups", json!(groups));
        issuer.verify(&claims, rules)
    };
    assert!(verify(&names(GROUPS_MAX, 64), &rules()).is_ok());
    for groups in [names(GROUPS_MAX + 1, 4), names(GROUPS_MAX, 65)] {
        let found = refused(verify(&groups, &rules()));
        assert_eq!(found, (TokenFault::Malformed, "groups".to_owned()));
        let one = Rules {
            groups: vec![groups[0].clone()],
            ..rules()
        };
        let proof = verify(&groups, &one).expect("one group counts");
        assert_eq!(proof.groups, groups[..1]);
    }
}

#[test]
fn required_claims_are_required() {
    let issuer = Issuer::new();
    let mut rules = rules();
    rules
        .require
        .insert("repository_owner".to_owned(), json!("acme"));
    rules.require.insert("/a/b".to_owned(), json!(true));
    let mut claims = claims_with("repository_owner", json!("acme"));
    for (nested, is_met) in [
        (json!({"b": true}), true),
        (json!({"b": [1, true]}), true),
        (json!({"b": "true"}), false),
        (json!(true), false),
    ] {
        claims["a"] = nested;
        assert_eq!(issuer.verify(&claims, &rules).is_ok(), is_met, "{claims}");
    }
    let found = refused(issuer.verify(&claims_with("a", json!({"b": true})), &rules));
    assert_eq!(found, (TokenFault::Unknown, "repository_owner".to_owned()));
}

#[test]
fn a_key_verifies_only_what_it_is_for() {
    let (rsa, p256) = (Signer::rsa(), Signer::p256());
    let with = |mut jwk: Value, name: &str, value: Value| {
        jwk[name] = value;
        jwk
    };
    let token = |algorithm| rsa.sign(&json!({"alg": algorithm, "kid": "k"}), &claims());
    let named = key_set(&[with(rsa.jwk("k"), "alg", json!("PS256"))]).expect("a key set");
    assert!(verify(&token("PS256"), &rules(), &named).is_ok());
    let found = refused(verify(&token("RS256"), &rules(), &named));
    assert_eq!(found, (TokenFault::Unknown, "alg".to_owned()));
    // The key fits, but the issuer does not use the algorithm.
    let all = key_set(&[rsa.jwk("k")]).expect("a key set");
    let found = refused(verify(&token("RS512"), &rules(), &all));
    assert_eq!(found, (TokenFault::Unknown, "alg".to_owned()));
    // A key of another type.
    let curve = key_set(&[p256.jwk("k")]).expect("a key set");
    let found = refused(verify(&token("RS256"), &rules(), &curve));
    assert_eq!(found, (TokenFault::Unknown, "alg".to_owned()));
    for unused in [
        with(p256.jwk("k"), "use", json!("enc")),
        with(p256.jwk("k"), "key_ops", json!(["sign"])),
        with(p256.jwk("k"), "alg", json!("ES384")),
        with(p256.jwk("k"), "alg", json!("ECDH-ES")),
        with(p256.jwk("k"), "crv", json!("secp256k1")),
        with(p256.jwk("k"), "x", json!("AAAA")),
        with(rsa.jwk("k"), "n", json!("!")),
        json!({"kty": "oct", "kid": "k", "k": "AAAA"}),
        json!({"kty": "new", "kid": "k"}),
        json!(7),
    ] {
        let invalid = key_set(std::slice::from_ref(&unused)).expect_err("no key verifies");
        assert_eq!(invalid, KeySetInvalid::NoKey(1), "{unused}");
    }
    let signing = with(
        with(p256.jwk("k"), "use", json!("sig")),
        "key_ops",
        json!(["verify"]),
    );
    assert_eq!(key_set(&[signing]).expect("a key set").count(), 1);
}

#[test]
fn rsa_keys_below_2048_bits_are_left_out() {
    let rsa = Signer::rsa();
    let mut small = rsa.jwk("small");
    // 1,024 bits.
    let der = STANDARD
        .decode(include_str!("../testdata/rsa_1024.pk8.base64"))
        .expect("base64");
    let modulus = der
        .windows(4)
        .position(|window| window == [0x02, 0x81, 0x81, 0x00]);
    let start = modulus.expect("a modulus") + 4;
    small["n"] = json!(base64url(&der[start..start + 128]));
    assert_eq!(
        key_set(&[small.clone()]).expect_err("it is small"),
        KeySetInvalid::NoKey(1)
    );
    // Zeros in front make it no larger.
    small["n"] = json!(base64url(
        [&[0; 200][..], &der[start..start + 128]].concat()
    ));
    assert_eq!(
        key_set(&[small]).expect_err("it is small"),
        KeySetInvalid::NoKey(1)
    );
    let mut padded = rsa.jwk("k");
    let n = base64::engine::general_purpose::URL_SAFE_NO_PAD
        .decode(padded["n"].as_str().expect("text"))
        .expect("base64url");
    padded["n"] = json!(base64url([&[0][..], &n].concat()));
    let keys = key_set(&[padded]).expect("a key set");
    let token = rsa.sign(&json!({"alg": "RS256", "kid": "k"}), &claims());
    assert!(verify(&token, &rules(), &keys).is_ok());
}

#[test]
fn a_key_id_is_needed_once_there_are_several_keys() {
    let (first, second) = (Signer::p256(), Signer::p256());
    let sign = |signer: &Signer, header: Value| signer.sign(&header, &claims());
    let both = key_set(&[first.jwk("k1"), second.jwk("k2")]).expect("a key set");
    let without = json!({"alg": "ES256"});
    let found = refused(verify(&sign(&first, without.clone()), &rules(), &both));
    assert_eq!(found, (TokenFault::Malformed, "kid".to_owned()));
    let header = |kid: &str| json!({"alg": "ES256", "kid": kid});
    assert!(verify(&sign(&second, header("k2")), &rules(), &both).is_ok());
    let found = refused(verify(&sign(&second, header("k1")), &rules(), &both));
    assert_eq!(found, (TokenFault::Unknown, "signature".to_owned()));
    let found = refused(verify(&sign(&second, header("k3")), &rules(), &both));
    assert_eq!(found, (TokenFault::KeyUnknown, "kid".to_owned()));
    // The only key needs no id. A token of the next key then has a wrong signature.
    let one = key_set(&[first.jwk("k1")]).expect("a key set");
    assert!(verify(&sign(&first, without.clone()), &rules(), &one).is_ok());
    let found = refused(verify(&sign(&second, without), &rules(), &one));
    assert_eq!(found, (TokenFault::KeyUnknown, "signature".to_owned()));
}

#[test]
fn a_text_that_is_no_key_set_is_refused() {
    for text in ["", "[]", "{}", "{\"keys\": {}}", "<html>"] {
        let invalid = KeySet::parse(text.as_bytes()).expect_err(text);
        assert!(matches!(invalid, KeySetInvalid::Malformed(_)), "{text}");
    }
    assert_eq!(
        key_set(&[]).expect_err("it is empty"),
        KeySetInvalid::NoKey(0)
    );
    let key = Signer::p256().jwk("k");
    assert!(key_set(&vec![key.clone(); KEYS_MAX]).is_ok());
    let many = key_set(&vec![key; KEYS_MAX + 1]).expect_err("too many");
    assert_eq!(many, KeySetInvalid::TooManyKeys(KEYS_MAX + 1));
    let long = vec![b' '; crate::KEY_SET_BYTES_MAX + 1];
    assert!(matches!(
        KeySet::parse(&long),
        Err(KeySetInvalid::TooLarge(_))
    ));
}
