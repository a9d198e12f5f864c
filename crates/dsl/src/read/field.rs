//! One named value, and the types that it can be read as.

use super::{Context, Fields, Reported, fields::join};
use crate::{
    Code, Finding, Span,
    quote::quote,
    tree::{Entry, Kind, Node, read_embedded_json},
};
use flotilla_engine::ids::NameInvalid;
use flotilla_engine::limits::WAIT_MS_MAX;
use std::borrow::Cow;

/// The value of a key, or an item of a list.
pub(super) struct Field<'doc> {
    /// The key as written; empty for items.
    pub(super) key: &'doc str,
    /// The key's position; for items, the item's.
    pub(super) key_span: Span,
    /// The value's path, such as `start.retry.max_attempts`.
    pub(super) place: String,
    pub(super) node: &'doc Node,
}

/// The range of a whole number, and the code for a value outside it.
#[derive(Clone, Copy)]
pub(super) struct Bounds {
    min: i64,
    max: i64,
    code: Code,
}

/// The longest duration that a definition can give, in milliseconds (W79).
const DURATION_MS_MAX: i64 = WAIT_MS_MAX as i64;

impl Bounds {
    pub(super) const fn new(min: i64, max: i64, code: Code) -> Self {
        Self { min, max, code }
    }

    /// A count of at least `min`.
    pub(super) const fn count(min: i64, code: Code) -> Self {
        Self::new(min, i32::MAX as i64, code)
    }

    /// A duration in milliseconds of at least `min`.
    pub(super) const fn duration(min: i64, code: Code) -> Self {
        Self::new(min, DURATION_MS_MAX, code)
    }
}

/// Keys that take a mapping, each with the key in it that a string in its place probably means.
const MAIN_KEYS: [(&str, &str); 9] = [
    ("fallback", "run"),
    ("compensate", "run"),
    ("onCancel", "run"),
    ("wait", "duration"),
    ("waitForSignal", "type"),
    ("emit", "stream"),
    ("concurrency", "key"),
    ("timeouts", "total"),
    ("forEach", "items"),
];

impl<'doc> Field<'doc> {
    pub(super) fn of(place: &str, entry: &'doc Entry) -> Self {
        Self {
            key: &entry.key,
            key_span: entry.key_span,
            place: join(place, &entry.key),
            node: &entry.value,
        }
    }

    /// The span to report: the value, or the key of an empty value.
    pub(super) fn span(&self) -> Span {
        if self.node.kind == Kind::Null {
            self.key_span
        } else {
            self.node.span
        }
    }

    /// Reports that the value is not what was expected.
    pub(super) fn mismatch(
        &self,
        code: Code,
        expected: &str,
        context: &mut Context<'doc>,
    ) -> Reported {
        context.error(self.mismatch_finding(code, expected))
    }

    pub(super) fn mismatch_finding(&self, code: Code, expected: &str) -> Finding {
        let message = format!(
            "expected {} to be {expected}, but it is {}",
            self.place,
            self.node.describe()
        );
        Finding::new(code, self.span(), message)
    }

    /// Warns that the setting has no effect, `because` of another one.
    pub(super) fn warn_without_effect(
        &self,
        because: &str,
        hint: &'static str,
        context: &mut Context<'doc>,
    ) {
        let message = format!("{} has no effect {because}", self.place);
        let finding = Finding::new(Code::E524, self.key_span, message);
        context.warn(finding.hint(hint));
    }

    /// A string. A value that YAML reads as another type must be quoted.
    pub(super) fn string(&self, context: &mut Context<'doc>) -> Result<&'doc str, Reported> {
        let finding = self.mismatch_finding(Code::E100, "a string");
        Err(context.error(match &self.node.kind {
            Kind::String(text) => return Ok(text),
            Kind::Number(text) => finding.hint(format!("quote it: {}", quote(text))),
            Kind::Bool(value) => finding.hint(format!("quote it: \"{value}\"")),
            _ => finding,
        }))
    }

    pub(super) fn boolean(&self, context: &mut Context<'doc>) -> Result<bool, Reported> {
        let finding = self.mismatch_finding(Code::E100, "true or false");
        Err(context.error(match &self.node.kind {
            Kind::Bool(value) => return Ok(*value),
            Kind::String(_) => finding.hint("write true or false without quotes"),
            _ => finding,
        }))
    }

    /// A whole number within a range.
    pub(super) fn whole<T: TryFrom<i64>>(
        &self,
        bounds: Bounds,
        context: &mut Context<'doc>,
    ) -> Result<T, Reported> {
        let text = match &self.node.kind {
            Kind::Number(text) if is_whole(text) => text,
            Kind::String(text) if is_whole(text) => {
                let finding = self.mismatch_finding(Code::E100, "a whole number");
                return Err(context.error(finding.hint("write it without quotes")));
            }
            _ => return Err(self.mismatch(Code::E100, "a whole number", context)),
        };
        let value = text
            .parse()
            .ok()
            .filter(|value| (bounds.min..=bounds.max).contains(value));
        value
            .and_then(|value| T::try_from(value).ok())
            .ok_or_else(|| {
                self.mismatch(
                    bounds.code,
                    &format!("from {} to {}", bounds.min, bounds.max),
                    context,
                )
            })
    }

    /// One of a few words.
    pub(super) fn word<T: Copy>(
        &self,
        words: &[(&'static str, T)],
        context: &mut Context<'doc>,
    ) -> Result<T, Reported> {
        self.word_as(words, Code::E100, context)
    }

    /// One of a few words, with the code to report for any other.
    pub(super) fn word_as<T: Copy>(
        &self,
        words: &[(&'static str, T)],
        code: Code,
        context: &mut Context<'doc>,
    ) -> Result<T, Reported> {
        if let Kind::String(text) = &self.node.kind
            && let Some((_, value)) = words.iter().find(|(word, _)| *word == &**text)
        {
            return Ok(*value);
        }
        let list: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
        let finding = self.mismatch_finding(code, &format!("one of {}", list.join(", ")));
        let nearest = match &self.node.kind {
            Kind::String(text) => context.nearest(text, words.iter().map(|(word, _)| *word)),
            _ => None,
        };
        Err(context.error(finding.suggest(nearest)))
    }

    /// One of a few words, where `-` and `_` are equivalent (W2).
    pub(super) fn word_folded<T: Copy>(
        &self,
        words: &[(&'static str, T)],
        context: &mut Context<'doc>,
    ) -> Result<T, Reported> {
        let folded = |text: &str| text.replace('-', "_");
        let same = |text: &str| words.iter().find(|(word, _)| folded(word) == folded(text));
        match &self.node.kind {
            Kind::String(text) => {
                same(text).map_or_else(|| self.word(words, context), |(_, value)| Ok(*value))
            }
            _ => self.word(words, context),
        }
    }

    /// A string that a name's constructor accepts.
    pub(super) fn name<T>(
        &self,
        make: impl FnOnce(&'doc str) -> Result<T, NameInvalid>,
        context: &mut Context<'doc>,
    ) -> Result<T, Reported> {
        let text = self.string(context)?;
        make(text).map_err(|error| context.malformed(self.span(), error.to_string()))
    }

    /// A list of such strings.
    pub(super) fn names<T>(
        &self,
        make: impl Fn(&'doc str) -> Result<T, NameInvalid>,
        context: &mut Context<'doc>,
    ) -> Result<Vec<T>, Reported> {
        self.names_at_most(usize::MAX, make, context)
    }

    /// Like [`Field::names`], with at most this many.
    pub(super) fn names_at_most<T>(
        &self,
        count_max: usize,
        make: impl Fn(&'doc str) -> Result<T, NameInvalid>,
        context: &mut Context<'doc>,
    ) -> Result<Vec<T>, Reported> {
        let results: Vec<Result<T, Reported>> = self
            .items_at_most(count_max, context)?
            .iter()
            .map(|item| item.name(&make, context))
            .collect();
        results.into_iter().collect()
    }

    /// A block with known keys.
    pub(super) fn fields(&self, context: &mut Context<'doc>) -> Result<Fields<'doc>, Reported> {
        match &self.node.kind {
            Kind::Mapping(entries) => Ok(Fields::new(self.place.clone(), self.key_span, entries)),
            _ => {
                let mut finding = self.mismatch_finding(Code::E100, "a mapping");
                finding.hint = self.as_mapping();
                Err(context.error(finding))
            }
        }
    }

    /// The mapping that a single value in its place probably means, as a hint.
    fn as_mapping(&self) -> Option<String> {
        let (main, value) = match &self.node.kind {
            Kind::Number(text) if self.key == "retry" => ("max_attempts", text.to_string()),
            // The fallback of a plan is a value.
            Kind::String(text) if !self.place.starts_with("plans.") => {
                let known = MAIN_KEYS.iter().find(|(key, _)| *key == self.key)?;
                (known.1, quote(text))
            }
            _ => return None,
        };
        Some(format!("write {}: {{{main}: {value}}}", self.key))
    }

    /// A mapping whose keys are names.
    pub(super) fn entries(
        &self,
        context: &mut Context<'doc>,
    ) -> Result<Vec<Field<'doc>>, Reported> {
        match &self.node.kind {
            Kind::Mapping(entries) => Ok(entries
                .iter()
                .map(|entry| Self::of(&self.place, entry))
                .collect()),
            _ => Err(self.mismatch(Code::E100, "a mapping", context)),
        }
    }

    pub(super) fn items(&self, context: &mut Context<'doc>) -> Result<Vec<Field<'doc>>, Reported> {
        let Kind::Sequence(items) = &self.node.kind else {
            return Err(self.mismatch(Code::E100, "a list", context));
        };
        let item = |(position, node): (usize, &'doc Node)| Self {
            key: "",
            key_span: node.span,
            place: format!("{}[{position}]", self.place),
            node,
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// The items of a list with at most `count_max` of them.
    pub(super) fn items_at_most(
        &self,
        count_max: usize,
        context: &mut Context<'doc>,
    ) -> Result<Vec<Field<'doc>>, Reported> {
        let items = self.items(context)?;
        if items.len() > count_max {
            let message = format!(
                "expected at most {count_max} items in {}, but it has {}",
                self.place,
                items.len()
            );
            return Err(context.malformed(self.span(), message));
        }
        Ok(items)
    }

    /// A value given as YAML or as a string of JSON text (W0); `hint` says what to do if the string is not JSON.
    pub(super) fn json(
        &self,
        hint: Option<String>,
        context: &mut Context<'doc>,
    ) -> Result<Cow<'doc, Node>, Reported> {
        let Kind::String(text) = &self.node.kind else {
            return Ok(Cow::Borrowed(self.node));
        };
        read_embedded_json(text, self.node.span)
            .map(Cow::Owned)
            .map_err(|error| {
                let message = format!(
                    "expected {} to be JSON text, but it is not: {error}",
                    self.place
                );
                let finding = Finding::new(Code::E100, error.span, message);
                context.error(match hint {
                    Some(hint) => finding.hint(hint),
                    None => finding,
                })
            })
    }
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The value of an optional key, or its default.
pub(super) fn or_default<'doc, T>(
    field: Option<Field<'doc>>,
    default: T,
    read: impl FnOnce(Field<'doc>) -> Result<T, Reported>,
) -> Result<T, Reported> {
    field.map_or(Ok(default), read)
}
