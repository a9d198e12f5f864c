//! Writes nodes as compact JSON text.

use super::{Kind, Node};
use crate::Span;

/// Receives JSON text piece by piece; strings separately, since mappings recognize paths in them
/// (W15).
pub(crate) trait Output {
    /// A piece that is already JSON text.
    fn text(&mut self, json: &str);
    /// A string value, not yet quoted, and its span.
    fn string(&mut self, text: &str, span: Span);
    /// A mapping; true if it was handled as a whole.
    fn mapping(&mut self, _node: &Node) -> bool {
        false
    }
}

/// Writes the node as compact JSON. Recurses as deep as trees nest: 64 levels.
pub(crate) fn write(node: &Node, output: &mut impl Output) {
    match &node.kind {
        Kind::Null => output.text("null"),
        Kind::Bool(true) => output.text("true"),
        Kind::Bool(false) => output.text("false"),
        Kind::Number(text) => output.text(text),
        Kind::String(text) => output.string(text, node.span),
        Kind::Sequence(items) => {
            output.text("[");
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    output.text(",");
                }
                write(item, output);
            }
            output.text("]");
        }
        Kind::Mapping(_) if output.mapping(node) => {}
        Kind::Mapping(entries) => {
            output.text("{");
            for (position, entry) in entries.iter().enumerate() {
                if position > 0 {
                    output.text(",");
                }
                output.text(&quoted(&entry.key));
                output.text(":");
                write(&entry.value, output);
            }
            output.text("}");
        }
    }
}

/// The node as compact JSON text.
pub(crate) fn compact(node: &Node) -> String {
    struct Compact(String);

    impl Output for Compact {
        fn text(&mut self, json: &str) {
            self.0.push_str(json);
        }

        fn string(&mut self, text: &str, _: Span) {
            self.0.push_str(&quoted(text));
        }
    }

    let mut output = Compact(String::new());
    write(node, &mut output);
    output.0
}

/// The text as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
