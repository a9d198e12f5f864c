//! Merges the values that branches have written to one key of the state (W58).

use crate::definition::{Merge, MergeRule};
use crate::expression::{Failure, Value, add, is_less};
use crate::json::{self, Json};
use std::collections::BTreeMap;

/// The values of the keys that have a rule.
pub(super) struct MergedKeys<'r, 'o> {
    by_key: BTreeMap<&'r str, Values<'o>>,
    /// How many fields were looked at.
    fields_count: u32,
}

/// The values of a key. A value that is null counts as absent.
struct Values<'o> {
    merge: Merge,
    before: Option<&'o str>,
    written: Vec<&'o str>,
}

impl<'r, 'o> MergedKeys<'r, 'o> {
    /// The keys with their values in the state.
    pub(super) fn new(rules: &'r [MergeRule], state: &'o str) -> Self {
        let of_rule = |rule: &'r MergeRule| {
            let values = Values {
                merge: rule.merge,
                before: None,
                written: Vec::new(),
            };
            (rule.key.as_str(), values)
        };
        let mut keys = Self {
            by_key: rules.iter().map(of_rule).collect(),
            fields_count: 0,
        };
        keys.visit(state, |values, value| values.before = Some(value));
        keys
    }

    /// Adds the values that a branch has written.
    pub(super) fn add(&mut self, object: &'o str) {
        self.visit(object, |values, value| values.written.push(value));
    }

    fn visit(&mut self, object: &'o str, note: impl Fn(&mut Values<'o>, &'o str)) {
        for (key, value) in json::fields(object) {
            self.fields_count = self.fields_count.saturating_add(1);
            let values = self.by_key.get_mut(&*json::key_name(key));
            if let Some(values) = values.filter(|_| value != "null") {
                note(values, value);
            }
        }
    }

    /// How many fields were looked at.
    pub(super) fn fields_count(&self) -> u32 {
        self.fields_count
    }

    /// Whether a key with a rule has a value, in the state or from a branch.
    pub(super) fn has_values(&self, key: &str) -> bool {
        let values = self.by_key.get(key);
        values.is_some_and(|values| values.all().next().is_some())
    }

    /// What becomes of a key that branches have written; `None` if it has no rule. The error says why its values cannot
    /// be merged.
    pub(super) fn merged(&self, key: &str) -> Option<Result<String, String>> {
        let values = self.by_key.get(key)?;
        let merged = match values.merge {
            Merge::Sum => values.sum(),
            Merge::Append => values.append(),
            Merge::Min => values.best(is_less),
            Merge::Max => values.best(|one, other| is_less(other, one)),
            Merge::First => Ok(values.all().next().unwrap_or(NULL).to_owned()),
        };
        let word = values.merge.word();
        Some(merged.map_err(|failure| format!("merge of \"{key}\" by {word}: {failure}")))
    }
}

const NULL: &str = "null";

impl<'o> Values<'o> {
    fn all(&self) -> impl Iterator<Item = &'o str> {
        self.before.into_iter().chain(self.written.iter().copied())
    }

    fn sum(&self) -> Result<String, Failure> {
        sum_numbers(self.all())
    }

    fn append(&self) -> Result<String, Failure> {
        if let Some(before) = self.before.filter(|before| !before.starts_with('[')) {
            return Err(Failure::not_a_list(&value(before)?));
        }
        let elements: Vec<&str> = self.all().map(elements).collect();
        let elements: Vec<&str> = elements
            .into_iter()
            .filter(|text| !text.is_empty())
            .collect();
        Ok(format!("[{}]", elements.join(",")))
    }

    /// The value that is better than all others; of equal ones the first.
    fn best(
        &self,
        is_better: impl Fn(&Value, &Value) -> Result<bool, Failure>,
    ) -> Result<String, Failure> {
        let mut best: Option<Value> = None;
        for text in self.all() {
            let value = value(text)?;
            let before = best.get_or_insert_with(|| value.clone());
            // The first value is compared with itself, so that a value without an order is refused.
            if is_better(&value, before)? {
                *before = value;
            }
        }
        best.map_or_else(|| Ok(NULL.to_owned()), |best| json(&best))
    }
}

/// The sum of JSON numbers.
pub(crate) fn sum_numbers<'t>(
    mut numbers: impl Iterator<Item = &'t str>,
) -> Result<String, Failure> {
    json(&numbers.try_fold(Value::Int(0), |sum, text| add(sum, value(text)?))?)
}

/// The elements of an array as they are written, or the value if it is not one.
fn elements(value: &str) -> &str {
    let inner = value
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inner.map_or(value, |inner| inner.trim_matches(json::is_space))
}

fn value(text: &str) -> Result<Value, Failure> {
    Value::from_json(Json::from_checked(text))
}

fn json(value: &Value) -> Result<String, Failure> {
    Ok(value.to_json()?.as_str().to_owned())
}
