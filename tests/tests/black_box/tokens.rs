//! API tokens from the command line, in an open cluster: a token that is shown has its limits (X1, X7a, X10).

use flotilla_tests::{DevNode, Flo};
use serde_json::{Value, json};

/// Creates a token with these grants, and returns `flo` with it, and its id.
fn with_grants(flo: &Flo, flags: &[&str]) -> (Flo, String) {
    let mut line = vec!["token", "create", "a token"];
    line.extend(flags);
    let created = flo.json(&line);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let id = text(&created["token"]["id"]);
    (flo.with_token(&text(&created["secret"])), id)
}

#[test]
fn a_token_does_what_its_grants_permit_and_nothing_else() {
    let node = DevNode::start();
    let flo = node.flo();
    let shop = flo.within("shop");
    let _ = shop.text(&["kv", "set", "k", "v"]);
    let (viewer, _) = with_grants(&shop, &["--role", "viewer"]);
    let (reader, _) = with_grants(&shop, &["--role", "reader"]);
    let (operator, _) = with_grants(&shop, &["--role", "operator@shop"]);
    let refused = |flo: &Flo, line: &[&str], permission: &str| {
        flo.refused(line)
            .expect(3, "permission_denied")
            .says(permission);
    };
    let _ = viewer.text(&["workflow", "list"]);
    refused(&viewer, &["kv", "get", "k"], "kv.read");
    assert_eq!(reader.text(&["kv", "get", "k"]), "v");
    refused(&reader, &["kv", "set", "k", "w"], "kv.write");
    let _ = operator.text(&["kv", "set", "k", "w"]);
    refused(&operator, &["stream", "create", "events"], "stream.write");
    // Elsewhere, and for the cluster as a whole, they have no right.
    refused(
        &operator.within("other"),
        &["kv", "set", "k", "v"],
        "kv.write",
    );
    refused(&operator, &["cluster", "status"], "cluster.read");
    refused(&operator, &["token", "list"], "token.write");
    let page = operator.json(&["ns", "list"]);
    assert_eq!(names(&page), ["shop"]);
    let all = flo.json(&["ns", "list"]);
    assert_eq!(names(&all), ["default", "shop"], "who shows none sees all");
}

#[test]
fn a_write_creates_a_namespace_only_for_those_who_may_create_it() {
    let node = DevNode::start();
    let flo = node.flo();
    let (writer, _) = with_grants(&flo, &["--cluster", "--role", "operator@acme.*"]);
    let (admin, _) = with_grants(&flo, &["--cluster", "--role", "admin@acme.*"]);
    let write = ["kv", "set", "k", "v"];
    writer
        .within("acme.eu")
        .refused(&write)
        .expect(3, "permission_denied")
        .says("namespace.create");
    let _ = admin.within("acme.eu").text(&write);
    let _ = writer.within("acme.eu").text(&write);
    flo.refused(&["ns", "delete", "acme.eu"])
        .expect(3, "namespace_not_empty");
}

#[test]
fn a_revoked_expired_wrong_or_mistyped_token_is_refused() {
    let node = DevNode::start();
    let flo = node.flo().within("shop");
    let _ = flo.text(&["kv", "set", "k", "v"]);
    let (reader, id) = with_grants(&flo, &["--role", "reader"]);
    let get = ["kv", "get", "k"];
    assert_eq!(reader.text(&get), "v");
    assert_eq!(flo.json(&["token", "revoke", &id])["revoked"], true);
    reader.refused(&get).expect(3, "credential_revoked");
    assert_eq!(flo.json(&["token", "revoke", &id])["revoked"], false);
    flo.refused(&["token", "rotate", &id])
        .expect(3, "token_ended");
    // X8, X9: a bad credential never counts as none.
    let mistyped = flo.with_token("flo_aaaaaaaaaa_0");
    mistyped
        .refused(&get)
        .expect(3, "credential_malformed")
        .says("checksum");
    flo.with_token("secret")
        .refused(&get)
        .expect(3, "credential_malformed")
        .hints("flo_");
    let (short, _) = with_grants(&flo, &["--role", "reader", "--ttl", "1ms"]);
    short.refused(&get).expect(3, "credential_expired");
}

#[test]
fn a_rotated_token_keeps_its_id_and_its_former_secret_for_a_while() {
    let node = DevNode::start();
    let flo = node.flo().within("shop");
    let _ = flo.text(&["kv", "set", "k", "v"]);
    let (first, id) = with_grants(&flo, &["--role", "reader"]);
    let rotated = |overlap: &str| {
        let rotated = flo.json(&["token", "rotate", &id, "--overlap", overlap]);
        assert_eq!(rotated["token"]["id"], *id);
        flo.with_token(rotated["secret"].as_str().expect("a text"))
    };
    let second = rotated("1h");
    let get = ["kv", "get", "k"];
    assert_eq!(first.text(&get), "v");
    assert_eq!(second.text(&get), "v");
    let third = rotated("1ms");
    // X6: the oldest secret was dropped, and the former one has ended.
    first.refused(&get).expect(3, "credential_unknown");
    second.refused(&get).expect(3, "credential_unknown");
    assert_eq!(third.text(&get), "v");
}

#[test]
fn a_token_creates_no_token_that_may_do_more() {
    let node = DevNode::start();
    let flo = node.flo().within("shop");
    let (admin, _) = with_grants(&flo, &["--role", "admin", "--identity", "user:ana"]);
    let (editor, id) = with_grants(&admin, &["--role", "editor"]);
    let shown = admin.json(&["token", "show", &id]);
    assert_eq!(shown["identity"], "user:ana", "that of its creator");
    assert_eq!(shown["grants"], json!(["editor@shop"]));
    let create = |flags: &[&'static str]| [&["token", "create", "more"], flags].concat();
    for flags in [&["--role", "worker"][..], &["--role", "viewer@other"]] {
        let refused = admin.refused(&create(flags));
        match flags[1] {
            "worker" => refused.expect(3, "grant_exceeds_own"),
            _ => refused.expect(2, "grant_out_of_scope"),
        };
    }
    admin
        .refused(&create(&["--cluster", "--role", "viewer@shop"]))
        .expect(3, "permission_denied");
    admin
        .refused(&create(&["--role", "viewer", "--ttl", "none"]))
        .expect(3, "permission_denied")
        .says("access.write");
    editor
        .refused(&create(&["--role", "viewer"]))
        .expect(3, "permission_denied");
    flo.refused(&create(&["--role", "owner"]))
        .expect(2, "invalid_argument")
        .says("owner")
        .hints("viewer");
}

#[test]
fn flo_reads_the_token_from_a_file_and_says_whose_it_is() {
    let node = DevNode::start();
    let flo = node.flo().within("shop");
    let anyone = flo.json(&["auth", "whoami"]);
    assert_eq!(
        anyone,
        json!({"mode": "open", "token": null, "subject": null})
    );
    let token = flo.text(&["token", "create", "deploy", "--role", "editor"]);
    assert!(token.starts_with("flo_") && token.len() == 64, "{token}");
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("deploy.token");
    std::fs::write(&file, format!("{token}\n")).expect("it is writable");
    let file = file.to_str().expect("UTF-8");
    let caller = flo.json(&["auth", "whoami", "--token-file", file]);
    assert_eq!(caller["token"]["name"], "deploy");
    assert_eq!(caller["token"]["namespace"], "shop");
    assert_eq!(caller["token"]["grants"], json!(["editor@shop"]));
    // X16: what a call needs is in its definition, whatever the token may do elsewhere.
    flo.refused(&["cluster", "status", "--token-file", file])
        .expect(3, "permission_denied");
    flo.refused(&["auth", "whoami", "--token-file", "no/such/file"])
        .expect(2, "file_unreadable");
}

fn names(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().expect("a list has items");
    items
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect()
}
