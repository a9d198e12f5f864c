//! Parses text to a tree of nodes with positions (W1).
//!
//! A decoder into Rust types would stop at the first error and forget the positions, hence this
//! tree. Here `saphyr-parser` finds the structure and the positions, `serde_yaml` decides the type
//! of a plain scalar (`scalar`), `serde_json` reads JSON (`json`), and the limits of W1 apply while
//! the tree grows: nothing is built first and measured later.

mod builder;
mod json;
mod json_text;
mod locator;
mod node;
mod scalar;

pub(crate) use json::{JsonInvalid, read as read_json};
pub(crate) use json_text::{Output, compact, quoted, write};
pub(crate) use node::{Entry, Kind, Node};

use crate::{Code, Finding, Span};
use flotilla_engine::limits;
use locator::Locator;

/// The maximum nesting of mappings and lists (W1).
pub(crate) const NESTING_MAX: usize = 64;
/// What aliases may add to the text, in bytes (W1).
const EXPANSION_BYTES_MAX: usize = 1 << 20;

/// The result of parsing a text.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The document; `None` if the findings explain why it is missing.
    pub(crate) root: Option<Node>,
    /// The findings about the text as such; all errors of E100, E105 and E107.
    pub(crate) findings: Vec<Finding>,
}

impl Tree {
    fn refused(finding: Finding) -> Self {
        Self {
            root: None,
            findings: vec![finding],
        }
    }
}

/// Reads one document of YAML or JSON.
pub(crate) fn build(text: &str) -> Tree {
    if text.len() > limits::DEFINITION_BYTES_MAX {
        let message = format!(
            "expected the definition to be at most {} bytes, but it is {}",
            limits::DEFINITION_BYTES_MAX,
            text.len()
        );
        return Tree::refused(Finding::new(Code::E100, Span::START, message));
    }
    let is_forbidden =
        |character: char| character.is_control() && !"\t\r\n\u{85}".contains(character);
    if let Some((offset, character)) = text.char_indices().find(|(_, c)| is_forbidden(*c)) {
        let span = Locator::new(text).span(offset, 1);
        let message = format!(
            "expected text, but found the control character U+{:04X}",
            u32::from(character)
        );
        return Tree::refused(Finding::new(Code::E100, span, message));
    }
    let tree = builder::build(text);
    // Strict JSON is not quite a subset of YAML: escaped surrogate pairs exist only in JSON.
    let is_json = tree.root.is_none() && text.trim_start().starts_with('{') && json::is_json(text);
    if is_json { json_document(text) } else { tree }
}

fn json_document(text: &str) -> Tree {
    match read_json(text, Locator::new(text)) {
        Ok(root) => Tree {
            root: Some(root),
            findings: Vec::new(),
        },
        Err(JsonInvalid { message, span }) => {
            Tree::refused(Finding::new(Code::E100, span, message))
        }
    }
}

/// Reads the JSON text that a string node holds.
pub(crate) fn read_embedded_json(text: &str, span: Span) -> Result<Node, JsonInvalid> {
    read_json(text, Locator::within(text, span))
}
