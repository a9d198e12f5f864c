//! The fields of a state, and of what the scopes below a run write to it.

use crate::json::{self, Json, quote};
use crate::tables::StateRecord;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Fields in the order in which their names first occur; of equal names the last one counts.
#[derive(Default)]
pub(super) struct StateFields<'o> {
    fields: Vec<(Cow<'o, str>, Change<'o>)>,
    positions: BTreeMap<Cow<'o, str>, usize>,
}

/// What becomes of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change<'o> {
    /// It gets this value.
    Value(Cow<'o, str>),
    /// It is removed, also from the scopes around.
    Removed,
}

impl<'o> StateFields<'o> {
    /// Adds a field over those that are there.
    pub(super) fn add(&mut self, name: Cow<'o, str>, change: Change<'o>) {
        match self.positions.get(&name) {
            Some(position) => self.fields[*position].1 = change,
            None => {
                self.positions.insert(name.clone(), self.fields.len());
                self.fields.push((name, change));
            }
        }
    }

    /// Adds the fields of an object.
    pub(super) fn add_object(&mut self, object: &'o str) {
        for (key, value) in json::fields(object) {
            self.add(json::key_name(key), Change::Value(value.into()));
        }
    }

    /// Adds what a scope has written.
    pub(super) fn add_written(&mut self, written: &'o StateRecord) {
        let removed: BTreeSet<&str> = written.removed.iter().map(String::as_str).collect();
        for (key, value) in json::fields(written.object.as_str()) {
            let name = json::key_name(key);
            let change = match removed.contains(&*name) {
                true => Change::Removed,
                false => Change::Value(value.into()),
            };
            self.add(name, change);
        }
    }

    /// Adds fields over those that are there.
    pub(super) fn add_all(&mut self, others: Self) {
        for (name, change) in others.fields {
            self.add(name, change);
        }
    }

    /// The size of the values, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let values = self.fields.iter().map(|(_, change)| match change {
            Change::Value(value) => value.len(),
            Change::Removed => 0,
        });
        values.sum()
    }

    /// What a patch that is an object (RFC 7396) changes of the fields.
    pub(super) fn patch_changes<'p>(&self, patch: &'p str) -> StateFields<'p> {
        let mut patched = StateFields::default();
        for (key, value) in json::fields(patch) {
            let name = json::key_name(key);
            let former = self.value(&name);
            if value != "null" {
                let merged = json::merge_patch(former.unwrap_or("null"), value);
                patched.add(name, Change::Value(merged.into()));
            } else if former.is_some() || patched.value(&name).is_some() {
                patched.add(name, Change::Removed);
            }
        }
        patched
    }

    /// The value of a field, if it has one.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        match &self.fields[*self.positions.get(name)?].1 {
            Change::Value(value) => Some(value),
            Change::Removed => None,
        }
    }

    /// How many fields there are, the removed ones included.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// The fields that are there, and those that are removed.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Change<'o>)> {
        self.fields.iter().map(|(name, change)| (&**name, change))
    }

    /// An object of the fields that have a value.
    pub(super) fn object(&self) -> String {
        let present = self.iter().filter_map(|(name, change)| match change {
            Change::Value(value) => Some((name, &**value)),
            Change::Removed => None,
        });
        object(present)
    }

    /// What a scope has written.
    pub(super) fn written(&self) -> StateRecord {
        let mut removed = Vec::new();
        let all = self.iter().map(|(name, change)| match change {
            Change::Value(value) => (name, &**value),
            Change::Removed => {
                removed.push(name.to_owned());
                (name, "null")
            }
        });
        let object = Json::from_checked(object(all));
        StateRecord { object, removed }
    }
}

fn object<'f>(fields: impl Iterator<Item = (&'f str, &'f str)>) -> String {
    let mut text = String::from("{");
    for (position, (name, value)) in fields.enumerate() {
        if position > 0 {
            text.push(',');
        }
        quote(name, &mut text);
        text.push(':');
        text.push_str(value);
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(object: &str, removed: &[&str]) -> StateRecord {
        StateRecord {
            object: Json::from_checked(object.to_owned()),
            removed: removed.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_scope_removes_a_field_of_the_scopes_around_and_may_write_it_again() {
        let outer = record(r#"{"a":1,"b":null,"c":{"d":1}}"#, &[]);
        let middle = record(r#"{"a":null,"c":null}"#, &["a", "c"]);
        let inner = record(r#"{"c":2}"#, &[]);
        let mut fields = StateFields::default();
        fields.add_written(&outer);
        fields.add_written(&middle);
        assert_eq!(fields.object(), r#"{"b":null}"#);
        assert_eq!(fields.value("a"), None);
        fields.add_written(&inner);
        assert_eq!(fields.object(), r#"{"b":null,"c":2}"#);
        assert_eq!(fields.value("c"), Some("2"));
    }

    #[test]
    fn what_a_scope_has_written_and_removed_is_kept() {
        let before = record(r#"{"a":1,"b":null}"#, &["b"]);
        let mut fields = StateFields::default();
        fields.add_written(&before);
        fields.add("a".into(), Change::Removed);
        fields.add("c".into(), Change::Value("null".into()));
        let after = record(r#"{"a":null,"b":null,"c":null}"#, &["a", "b"]);
        assert_eq!(fields.written(), after);
    }
}
