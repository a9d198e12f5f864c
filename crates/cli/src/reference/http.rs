//! The description of the HTTP API, and the page of its routes, from the protocol files.

use expect_test::expect_file;
use flotilla_server::openapi;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

const HEAD: &str = "\
# HTTP routes

The routes of the [HTTP API](../http.md), by subject. `N` stands for `/v1/namespaces/{namespace}`. The permission is the one
that a [token](../tokens.md) needs in a closed cluster. `/v1/openapi.json` of every node describes all fields, in OpenAPI 3.1.

This page is generated from the protocol files, so it lists every route.
";

const TAIL: &str = "
## Others

| route | permission | what it does |
|---|---|---|
| `POST /v1/tasks/{id}/report` | the task's token | Reports the outcome of an accepted task. |
| `GET /v1/openapi.json` | none | Describes the API in OpenAPI 3.1. |
| `GET /v1/errors`, `GET /v1/errors/{code}` | none | Lists the error codes; describes one. |
| `GET /livez`, `GET /readyz` | none | Probes of the node. |
| `GET /metrics` | `cluster.read`, unless `metrics_public` is set | The node's metrics, for Prometheus. |
";

const NAMESPACE: &str = "/v1/namespaces/{namespace}";

#[test]
fn the_description_of_the_api_is_up_to_date() {
    let text = serde_json::to_string_pretty(&openapi()).expect("JSON");
    expect_file!["../../../../docs/openapi.json"].assert_eq(&(text + "\n"));
}

#[test]
fn the_page_of_routes_lists_the_routes() {
    let document = openapi();
    let mut page = String::from(HEAD);
    for (tag, rows) in by_tag(&document) {
        write!(
            page,
            "\n## {tag}\n\n| route | permission | what it does |\n|---|---|---|\n"
        )
        .expect("a string takes any text");
        for row in rows {
            writeln!(page, "{row}").expect("a string takes any text");
        }
    }
    page.push_str(TAIL);
    expect_file!["../../../../docs/manual/reference/http.md"].assert_eq(&page);
}

/// The rows of the table, by the tag of the operation.
fn by_tag(document: &Value) -> BTreeMap<&str, Vec<String>> {
    let mut rows: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let paths = document["paths"].as_object().expect("paths");
    for (path, operations) in paths {
        for (method, operation) in operations.as_object().expect("operations") {
            let text = |name: &str| operation[name].as_str().expect("a text");
            let (method, path) = (method.to_uppercase(), path.replacen(NAMESPACE, "N", 1));
            let row = format!(
                "| `{method} {path}` | `{}` | {}. |",
                text("x-flo-permission"),
                text("summary")
            );
            let tag = operation["tags"][0].as_str().expect("a tag");
            rows.entry(tag).or_default().push(row);
        }
    }
    rows
}
