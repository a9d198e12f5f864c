//! Reads a mapping with known keys, key by key (W2).

use super::{Context, Field, Reported};
use crate::{
    Code, Finding, Span,
    quote::{cut, quote},
    tree::{Entry, Kind, Node},
};

/// A block of the grammar whose keys are being read.
pub(super) struct Fields<'doc> {
    /// The block's path, such as `start.retry`; empty at the top level.
    pub(super) place: String,
    /// The span to report when something is missing: the block's key.
    pub(super) span: Span,
    entries: &'doc [Entry],
    is_taken: Vec<bool>,
    /// The keys that were requested.
    known: Vec<&'static str>,
}

impl<'doc> Fields<'doc> {
    /// The document's top level.
    pub(super) fn root(root: &'doc Node, context: &mut Context<'doc>) -> Result<Self, Reported> {
        match &root.kind {
            Kind::Mapping(entries) => Ok(Self::new(String::new(), root.span, entries)),
            _ => {
                let message = format!(
                    "expected the definition to be a mapping, but it is {}",
                    root.describe()
                );
                Err(context.malformed(root.span, message))
            }
        }
    }

    pub(super) fn new(place: String, span: Span, entries: &'doc [Entry]) -> Self {
        Self {
            place,
            span,
            entries,
            is_taken: vec![false; entries.len()],
            known: Vec::new(),
        }
    }

    /// The block's path for messages.
    pub(super) fn place(&self) -> &str {
        if self.place.is_empty() {
            "the top level"
        } else {
            &self.place
        }
    }

    /// Whether the key is there, in either spelling.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries
            .iter()
            .any(|entry| is_spelling_of(&entry.key, key))
    }

    /// The value of a key, in its documented spelling or the other case.
    pub(super) fn take(
        &mut self,
        key: &'static str,
        context: &mut Context<'doc>,
    ) -> Option<Field<'doc>> {
        self.take_any(&[key], context)
    }

    /// The value of a key that has synonyms; giving two of them is an error.
    pub(super) fn take_any(
        &mut self,
        keys: &[&'static str],
        context: &mut Context<'doc>,
    ) -> Option<Field<'doc>> {
        self.known.extend(keys);
        let mut first: Option<&'doc Entry> = None;
        for (entry, is_taken) in self.entries.iter().zip(&mut self.is_taken) {
            if !keys.iter().any(|key| is_spelling_of(&entry.key, key)) {
                continue;
            }
            *is_taken = true;
            match first {
                None => first = Some(entry),
                Some(first) => {
                    let place = if self.place.is_empty() {
                        "the top level"
                    } else {
                        &self.place
                    };
                    let message = format!(
                        "\"{}\" and \"{}\" at {place} are the same key",
                        first.key, entry.key
                    );
                    let finding = Finding::new(Code::E100, entry.key_span, message);
                    context.error(finding.hint("keep one of them"));
                }
            }
        }
        first.map(|entry| Field::of(&self.place, entry))
    }

    /// The value of a required key.
    pub(super) fn require(
        &mut self,
        keys: &[&'static str],
        context: &mut Context<'doc>,
    ) -> Result<Field<'doc>, Reported> {
        match self.take_any(keys, context) {
            Some(field) => Ok(field),
            None => Err(context.malformed(
                self.span,
                format!(
                    "expected {} to have `{}`, but it is missing",
                    self.place(),
                    keys[0]
                ),
            )),
        }
    }

    /// Rejects the keys that were not requested.
    pub(super) fn finish(self, context: &mut Context<'doc>) -> Result<(), Reported> {
        let mut result = Ok(());
        for (entry, _) in self
            .entries
            .iter()
            .zip(&self.is_taken)
            .filter(|(_, is_taken)| !**is_taken)
        {
            let message = format!("unknown key {} at {}", quote(&entry.key), self.place());
            let finding = Finding::new(Code::E100, entry.key_span, message);
            let finding = match context.nearest(&entry.key, self.known.iter().copied()) {
                Some(known) => finding.suggest(Some(known)),
                None if &*entry.key == "<<" => {
                    finding.hint("merge keys are not supported; write the keys out")
                }
                None => finding.hint(format!("the known keys here are {}", self.known.join(", "))),
            };
            result = Err(context.error(finding));
        }
        result
    }
}

/// A child's path.
pub(super) fn join(place: &str, key: &str) -> String {
    if place.is_empty() {
        cut(key)
    } else {
        format!("{place}.{}", cut(key))
    }
}

/// Whether `key` is `documented`, or its spelling in the other case: `max_attempts`, `maxAttempts`.
fn is_spelling_of(key: &str, documented: &str) -> bool {
    key == documented
        || key.bytes().eq(snake_case(documented))
        || (key.bytes().eq(camel_case(documented)))
}

fn snake_case(key: &str) -> impl Iterator<Item = u8> {
    key.bytes().flat_map(|byte| {
        let dash = byte.is_ascii_uppercase().then_some(b'_');
        dash.into_iter().chain([byte.to_ascii_lowercase()])
    })
}

fn camel_case(key: &str) -> impl Iterator<Item = u8> {
    let mut is_after_dash = false;
    key.bytes().filter_map(move |byte| {
        if byte == b'_' {
            is_after_dash = true;
            return None;
        }
        let is_capital = std::mem::take(&mut is_after_dash);
        Some(if is_capital {
            byte.to_ascii_uppercase()
        } else {
            byte
        })
    })
}

#[cfg(test)]
mod tests {
    use super::is_spelling_of;

    #[test]
    fn a_key_has_its_documented_and_its_other_case_spelling() {
        assert!(is_spelling_of("max_attempts", "max_attempts"));
        assert!(is_spelling_of("maxAttempts", "max_attempts"));
        assert!(is_spelling_of("timeoutMs", "timeoutMs"));
        assert!(is_spelling_of("timeout_ms", "timeoutMs"));
        assert!(is_spelling_of("half_open_max_calls", "halfOpenMaxCalls"));
        assert!(!is_spelling_of("max_Attempts", "max_attempts"));
        assert!(!is_spelling_of("maxattempts", "max_attempts"));
        assert!(!is_spelling_of("MaxAttempts", "max_attempts"));
    }
}
