//! Checks a schema's references: they stay within the schema, and are few enough that one
//! validation does not explode.
//!
//! Twenty definitions that each refer twice to the next one make a million checks of one value, as
//! a YAML bomb makes a million nodes. So a reference counts as much as the subschema that it refers
//! to. A schema that refers to itself is counted once: how often it is checked then depends on the
//! depth of the input.

use super::SchemaInvalid;
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// The maximum of subschemas with all references expanded.
const SUBSCHEMAS_MAX: u64 = 10_000;
/// Keywords that hold data or definitions, which are checked only where they are referred to.
const PASSIVE: [&str; 6] = [
    "$defs",
    "definitions",
    "const",
    "enum",
    "default",
    "examples",
];

/// Checks the references of a schema, and returns how many of them lead back to what they are in.
pub(super) fn check(schema: &Value) -> Result<u32, SchemaInvalid> {
    let mut counter = Counter {
        root: schema,
        anchors: HashMap::new(),
        counts: HashMap::new(),
        open: HashSet::new(),
        circles_count: 0,
    };
    counter.note_anchors(schema, true)?;
    let count = counter.count(schema)?;
    if count > SUBSCHEMAS_MAX {
        let message = format!("its references expand to more than {SUBSCHEMAS_MAX} subschemas");
        return Err(SchemaInvalid::whole(message));
    }
    Ok(counter.circles_count)
}

struct Counter<'schema> {
    root: &'schema Value,
    /// The parts that `$anchor` names.
    anchors: HashMap<&'schema str, &'schema Value>,
    /// The count of each part by its address; 1 while it is being counted.
    counts: HashMap<*const Value, u64>,
    /// The parts that are being counted.
    open: HashSet<*const Value>,
    /// References to such parts.
    circles_count: u32,
}

impl<'schema> Counter<'schema> {
    /// Recurses as deep as the text nests, which its reader bounds.
    fn note_anchors(&mut self, part: &'schema Value, is_root: bool) -> Result<(), SchemaInvalid> {
        match part {
            Value::Array(items) => items
                .iter()
                .try_for_each(|item| self.note_anchors(item, false)),
            Value::Object(keywords) => {
                if !is_root && keywords.get("$id").is_some_and(Value::is_string) {
                    return Err(SchemaInvalid::whole(
                        "it has an `$id` below its top".to_owned(),
                    ));
                }
                for keyword in ["$anchor", "$dynamicAnchor"] {
                    if let Some(Value::String(name)) = keywords.get(keyword) {
                        self.anchors.insert(name, part);
                    }
                }
                keywords
                    .values()
                    .try_for_each(|value| self.note_anchors(value, false))
            }
            _ => Ok(()),
        }
    }

    /// The subschemas of a part, with references expanded.
    fn count(&mut self, part: &'schema Value) -> Result<u64, SchemaInvalid> {
        if let Some(known) = self.counts.get(&std::ptr::from_ref(part)) {
            return Ok(*known);
        }
        let mut count = 0_u64;
        match part {
            Value::Array(items) => {
                for item in items {
                    count = count.saturating_add(self.count(item)?);
                }
            }
            Value::Object(keywords) => {
                self.counts.insert(part, 1);
                self.open.insert(part);
                count = 1;
                for (keyword, value) in keywords {
                    let is_reference = keyword == "$ref" || keyword == "$dynamicRef";
                    count = count.saturating_add(match value {
                        Value::String(reference) if is_reference => {
                            self.count_reference(reference)?
                        }
                        _ if PASSIVE.contains(&keyword.as_str()) => 0,
                        _ => self.count(value)?,
                    });
                }
                self.counts.insert(part, count);
                self.open.remove(&std::ptr::from_ref(part));
            }
            _ => {}
        }
        Ok(count)
    }

    fn count_reference(&mut self, reference: &str) -> Result<u64, SchemaInvalid> {
        let Some(fragment) = reference.strip_prefix('#') else {
            let shown = crate::quote::quote(reference);
            return Err(SchemaInvalid::whole(format!(
                "it refers to another document, {shown}"
            )));
        };
        let target = if fragment.is_empty() || fragment.starts_with('/') {
            self.root.pointer(fragment)
        } else {
            self.anchors.get(fragment).copied()
        };
        if target.is_some_and(|target| self.open.contains(&std::ptr::from_ref(target))) {
            self.circles_count = self.circles_count.saturating_add(1);
        }
        // A reference to nothing is found when the schema is compiled.
        target.map_or(Ok(1), |target| self.count(target))
    }
}
