//! The nodes of a document.

use crate::{Span, quote::quote};
use std::rc::Rc;

/// A value and its span.
///
/// Children are shared, so that an alias costs nothing however much it repeats; the builder still
/// counts what it repeats, since readers walk all of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

/// The kind of a node: the value model of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    /// Invariant: a JSON number, kept as text so that no digit is lost.
    Number(Rc<str>),
    String(Rc<str>),
    Sequence(Rc<[Node]>),
    /// Invariant: keys are unique.
    Mapping(Rc<[Entry]>),
}

/// One line of a mapping.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: Rc<str>,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

impl Node {
    /// Describes the node, for `expected …, but it is …`.
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Null => "empty".to_owned(),
            Kind::Bool(value) => format!("the boolean {value}"),
            Kind::Number(text) => format!("the number {}", crate::quote::cut(text)),
            Kind::String(text) => format!("the string {}", quote(text)),
            Kind::Sequence(_) => "a list".to_owned(),
            Kind::Mapping(_) => "a mapping".to_owned(),
        }
    }

    /// The part at a JSON pointer.
    pub(crate) fn at_pointer(&self, pointer: &str) -> Option<&Self> {
        pointer
            .split('/')
            .skip(1)
            .try_fold(self, |node, token| match &node.kind {
                Kind::Mapping(entries) => {
                    let key = token.replace("~1", "/").replace("~0", "~");
                    entries
                        .iter()
                        .find(|entry| *entry.key == *key)
                        .map(|entry| &entry.value)
                }
                Kind::Sequence(items) => items.get(token.parse::<usize>().ok()?),
                _ => None,
            })
    }
}
