//! The keys that a manifest may have, and the form of their values.

use serde_json::Value;
use std::sync::LazyLock;

/// The shapes by kind: those of Kubernetes, and ours for compose files and units.
///
/// A map names the allowed keys, with `*` for all others; a list has one shape for all items. A
/// text is `any`, `text`, `number`, `bool`, `map` (of texts), or the allowed values, separated by
/// `|`.
static SHAPES: LazyLock<Value> =
    LazyLock::new(|| serde_yaml::from_str(include_str!("shapes.yaml")).expect("shapes in YAML"));

/// The deviations of a manifest from the shape of its kind, as sentences.
pub(super) fn mismatches(kind: &str, found: &Value) -> Vec<String> {
    let Some(shape) = SHAPES.get(kind) else {
        return vec![format!(
            "expected a kind with a shape, but {kind:?} does not have one"
        )];
    };
    let mut mismatches = Vec::new();
    compare(shape, found, kind, &mut mismatches);
    mismatches
}

fn compare(shape: &Value, found: &Value, place: &str, mismatches: &mut Vec<String>) {
    match (shape, found) {
        (Value::Object(keys), Value::Object(fields)) => {
            for (name, field) in fields {
                let place = format!("{place}.{name}");
                match keys.get(name).or_else(|| keys.get("*")) {
                    Some(shape) => compare(shape, field, &place, mismatches),
                    None => mismatches.push(format!("expected a known key, but found {place}")),
                }
            }
        }
        (Value::Array(item), Value::Array(items)) => {
            for (position, field) in items.iter().enumerate() {
                compare(&item[0], field, &format!("{place}[{position}]"), mismatches);
            }
        }
        (Value::String(form), found) if is_of_form(form, found) => {}
        (shape, found) => {
            mismatches.push(format!("expected {place} to be {shape}, but it is {found}"));
        }
    }
}

fn is_of_form(form: &str, found: &Value) -> bool {
    match form {
        "any" => true,
        "text" => found.is_string(),
        "number" => found.is_u64(),
        "bool" => found.is_boolean(),
        "map" => found
            .as_object()
            .is_some_and(|fields| fields.values().all(Value::is_string)),
        values => {
            let found = found
                .as_str()
                .map_or_else(|| found.to_string(), str::to_owned);
            values.split('|').any(|value| value == found)
        }
    }
}

#[test]
fn a_key_or_a_value_of_another_form_is_reported_with_its_place() {
    let manifest = serde_json::json!({
        "kind": "PodDisruptionBudget", "metadata": {"nam": "a"},
        "spec": {"maxUnavailable": "one", "selector": {"matchLabels": {"a": 1}}},
    });
    let mismatches = mismatches("PodDisruptionBudget", &manifest).join("\n");
    expect_test::expect![[r#"
        expected a known key, but found PodDisruptionBudget.metadata.nam
        expected PodDisruptionBudget.spec.maxUnavailable to be "number", but it is "one"
        expected PodDisruptionBudget.spec.selector.matchLabels to be "map", but it is {"a":1}"#]]
    .assert_eq(&mismatches);
}
