//! Keys and namespaces from the command line.

use flotilla_tests::DevNode;
use serde_json::{Value, json};

#[test]
fn a_key_is_set_read_compared_scanned_and_deleted() {
    let node = DevNode::start();
    let flo = node.flo();
    let set = flo.json(&["kv", "set", "config/limit", "100", "--if-absent"]);
    let version = set["version"].to_string();
    assert_eq!(flo.text(&["kv", "get", "config/limit"]), "100");
    let item = flo.json(&["kv", "get", "config/limit"]);
    let expected = json!({
        "key": "config/limit", "value": 100, "version": set["version"], "expires_at_ms": null,
    });
    assert_eq!(item, expected);

    flo.refused(&["kv", "set", "config/limit", "1", "--if-absent"])
        .expect(3, "key_exists");
    let _ = flo.text(&["kv", "set", "config/limit", "200", "--if-version", &version]);
    flo.refused(&["kv", "set", "config/limit", "300", "--if-version", &version])
        .expect(3, "key_version_mismatch")
        .hints("flo kv get");
    let _ = flo.text(&["kv", "set", "config/name", "ada", "--ttl-ms", "3600000"]);
    let page = flo.json(&["kv", "scan", "config/"]);
    let values: Vec<&Value> = items(&page).iter().map(|item| &item["value"]).collect();
    assert_eq!(values, [&json!(200), &json!("ada")]);
    assert_eq!(page["next_page_token"], Value::Null);
    assert!(items(&page)[1]["expires_at_ms"].is_u64(), "{page}");

    let deleted = flo.json(&["kv", "delete", "config/limit"]);
    assert_eq!(deleted["deleted"], true);
    assert_eq!(
        flo.json(&["kv", "delete", "config/limit"])["deleted"],
        false
    );
    flo.refused(&["kv", "get", "config/limit"])
        .expect(1, "key_not_found");
}

#[test]
fn a_scan_gives_as_many_keys_as_were_asked_for() {
    let node = DevNode::start();
    let flo = node.flo();
    for number in 0..60 {
        let _ = flo.text(&["kv", "set", &format!("k/{number:02}"), "x"]);
    }
    let first = flo.json(&["kv", "scan", "k/", "--limit", "55"]);
    assert_eq!(items(&first).len(), 55);
    let page = first["next_page_token"].as_str().expect("there is more");
    let second = flo.json(&["kv", "scan", "k/", "--page-token", page]);
    assert_eq!(items(&second).len(), 5);
    assert_eq!(items(&second)[0]["key"], "k/55");
}

#[test]
fn a_namespace_begins_with_its_first_write_and_its_name_is_checked() {
    let node = DevNode::start();
    let flo = node.flo();
    for name in ["1st", "shop-", "a b", &"x".repeat(64)] {
        flo.refused(&["ns", "create", name])
            .expect(2, "invalid_argument");
        flo.refused(&["-n", name, "kv", "set", "k", "v"])
            .expect(2, "invalid_argument")
            .says("a namespace");
    }
    assert_eq!(flo.json(&["ns", "create", "audit"])["created"], true);
    let _ = flo.text(&["-n", "shop", "kv", "set", "k", "v"]);
    let page = flo.json(&["ns", "list"]);
    let names: Vec<&str> = items(&page)
        .iter()
        .filter_map(|item| item["name"].as_str())
        .collect();
    assert!(
        names.contains(&"audit") && names.contains(&"shop"),
        "{names:?}"
    );
    assert_eq!(flo.json(&["ns", "delete", "audit"])["deleted"], true);
    flo.refused(&["ns", "delete", "shop"])
        .expect(3, "namespace_not_empty")
        .says("keys");
    let _ = flo.text(&["-n", "shop", "kv", "delete", "k"]);
    assert_eq!(flo.json(&["ns", "delete", "shop"])["deleted"], true);
    flo.refused(&["ns", "delete", "default"])
        .expect(3, "namespace_is_default");
}

fn items(page: &Value) -> &[Value] {
    page["items"].as_array().expect("a list has items")
}
