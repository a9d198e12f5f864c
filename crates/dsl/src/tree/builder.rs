//! Builds a tree from parser events, within the limits of W1.

use super::{EXPANSION_BYTES_MAX, Entry, Kind, NESTING_MAX, Node, Tree, locator::Locator, scalar};
use crate::{Code, Finding, Span, quote::quote};
use saphyr_parser::{Event, Parser, ScalarStyle, ScanError};
use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

/// What a node counts in addition to its text when aliases repeat it, in bytes.
const NODE_BYTES: usize = 16;

/// Reads one YAML document.
pub(super) fn build(text: &str) -> Tree {
    let mut builder = Builder::default();
    let mut parser = Parser::new_from_str(text);
    let end = Locator::new(text).span(text.len(), 0);
    while let Some(event) = parser.next_event() {
        let result = match event {
            Ok((event, span)) => builder.event(event, within(place(&span), end)),
            Err(error) => Err(scan_failure(&error, end)),
        };
        if let Err(finding) = result {
            builder.findings.push(finding);
            return Tree {
                root: None,
                findings: builder.findings,
            };
        }
    }
    if builder.root.is_none() && builder.findings.is_empty() {
        return Tree::refused(Finding::new(
            Code::E100,
            Span::START,
            "expected a definition, but the document is empty",
        ));
    }
    Tree {
        root: builder.root,
        findings: builder.findings,
    }
}

fn place(span: &saphyr_parser::Span) -> Span {
    let is_one_line = span.start.line() == span.end.line();
    let length = if is_one_line {
        span.end.col().saturating_sub(span.start.col())
    } else {
        1
    };
    Span::new(span.start.line(), span.start.col() + 1, length)
}

/// The span itself, or the text's end: if the last line does not end, the parser adds one more.
fn within(span: Span, end: Span) -> Span {
    if span.line > end.line { end } else { span }
}

fn scan_failure(error: &ScanError, end: Span) -> Finding {
    let span = Span::new(error.marker().line(), error.marker().col() + 1, 1);
    let span = within(span, end);
    if error.info().contains("recursion limit") {
        return too_deep(span);
    }
    let finding = Finding::new(Code::E100, span, format!("not YAML: {}", error.info()));
    match hint(error.info()) {
        Some(hint) => finding.hint(hint),
        None => finding,
    }
}

/// What to do about an error of the parser: a text that should be quoted.
fn hint(info: &str) -> Option<&'static str> {
    if info.contains("unexpected character: `@'") {
        return Some("quote a text that begins with `@`, such as \"@actions/NAME\"");
    }
    let is_in_flow = info.contains("did not find expected ',' or '}'")
        || info.contains("did not find expected ',' or ']'");
    is_in_flow.then_some("inside `{…}` and `[…]`, quote a text that contains one of `,:?[]{}`")
}

fn too_deep(span: Span) -> Finding {
    Finding::new(
        Code::E100,
        span,
        format!("expected at most {NESTING_MAX} levels of nesting, but this one is deeper"),
    )
}

/// A finished node, with its size for the limits.
#[derive(Clone)]
struct Built {
    node: Node,
    /// Its size when expanded, in bytes.
    weight: usize,
    /// Levels of nesting in it; 0 for a scalar.
    height: usize,
}

/// A mapping or list that is not closed yet.
struct Open {
    span: Span,
    anchor: usize,
    weight: usize,
    height: usize,
    content: Content,
}

enum Content {
    Sequence(Vec<Node>),
    Mapping {
        entries: Vec<Entry>,
        lines: BTreeMap<Rc<str>, u32>,
        key: Option<(Rc<str>, Span)>,
    },
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    /// Finished nodes by the parser's anchor number.
    anchors: BTreeMap<usize, Built>,
    /// Anchors of nodes that are still open: an alias to one would be a cycle.
    unfinished: BTreeSet<usize>,
    expansion: usize,
    documents: usize,
    root: Option<Node>,
    findings: Vec<Finding>,
}

impl Builder {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), Finding> {
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 {
                    let message = "expected one document, but a second one begins here";
                    return Err(Finding::new(Code::E100, span, message));
                }
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_tag(tag.is_some(), span);
                self.scalar(&text, style, anchor, span)
            }
            Event::SequenceStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), span);
                self.begin(Content::Sequence(Vec::new()), anchor, span)
            }
            Event::MappingStart(anchor, tag) => {
                self.refuse_tag(tag.is_some(), span);
                let content = Content::Mapping {
                    entries: Vec::new(),
                    lines: BTreeMap::new(),
                    key: None,
                };
                self.begin(content, anchor, span)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Alias(anchor) => self.alias(anchor, span),
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn refuse_tag(&mut self, is_tagged: bool, span: Span) {
        if is_tagged {
            let finding = Finding::new(
                Code::E100,
                span,
                "expected a value without a YAML tag, but it has one",
            );
            self.findings
                .push(finding.hint("remove the tag; quote a value to make it a string"));
        }
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        anchor: usize,
        span: Span,
    ) -> Result<(), Finding> {
        let kind = if style == ScalarStyle::Plain && !self.is_key_expected() {
            scalar::resolve(text).unwrap_or_else(|()| {
                let message = format!(
                    "expected a number that JSON can write, but it is {}",
                    quote(text)
                );
                self.findings.push(
                    Finding::new(Code::E100, span, message).hint("quote it to make it a string"),
                );
                Kind::Null
            })
        } else {
            Kind::String(text.into())
        };
        let built = Built {
            node: Node { span, kind },
            weight: NODE_BYTES + text.len(),
            height: 0,
        };
        self.add(built, anchor)
    }

    fn begin(&mut self, content: Content, anchor: usize, span: Span) -> Result<(), Finding> {
        if self.is_key_expected() {
            return Err(Finding::new(
                Code::E100,
                span,
                "expected a key, but here is a mapping or list",
            ));
        }
        if self.open.len() == NESTING_MAX {
            return Err(too_deep(span));
        }
        if anchor > 0 {
            self.unfinished.insert(anchor);
        }
        self.open.push(Open {
            span,
            anchor,
            weight: NODE_BYTES,
            height: 1,
            content,
        });
        Ok(())
    }

    fn end(&mut self) -> Result<(), Finding> {
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let kind = match open.content {
            Content::Sequence(items) => Kind::Sequence(items.into()),
            Content::Mapping { entries, .. } => Kind::Mapping(entries.into()),
        };
        self.unfinished.remove(&open.anchor);
        let node = Node {
            span: open.span,
            kind,
        };
        self.add(
            Built {
                node,
                weight: open.weight,
                height: open.height,
            },
            open.anchor,
        )
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), Finding> {
        if self.unfinished.contains(&anchor) {
            return Err(Finding::new(
                Code::E100,
                span,
                "expected an alias to a finished value, but it is inside that value",
            ));
        }
        let Some(mut built) = self.anchors.get(&anchor).cloned() else {
            return Err(Finding::new(
                Code::E100,
                span,
                "expected an alias to an anchor above it, but no such anchor exists",
            ));
        };
        self.expansion = self.expansion.saturating_add(built.weight);
        if self.expansion > EXPANSION_BYTES_MAX {
            let message = format!(
                "expected aliases to expand to at most {EXPANSION_BYTES_MAX} bytes, but here they \
                 exceed that"
            );
            return Err(Finding::new(Code::E100, span, message));
        }
        if self.open.len() + built.height > NESTING_MAX {
            return Err(too_deep(span));
        }
        built.node.span = span;
        self.add(built, 0)
    }

    /// Adds a finished node to its parent.
    fn add(&mut self, built: Built, anchor: usize) -> Result<(), Finding> {
        if anchor > 0 {
            self.anchors.insert(anchor, built.clone());
        }
        let top_key = self.top_key();
        let Some(open) = self.open.last_mut() else {
            self.root = Some(built.node);
            return Ok(());
        };
        open.weight = open.weight.saturating_add(built.weight);
        open.height = open.height.max(built.height + 1);
        match &mut open.content {
            Content::Sequence(items) => items.push(built.node),
            Content::Mapping {
                entries,
                lines,
                key,
            } => match key.take() {
                None => *key = Some((key_text(&built.node)?, built.node.span)),
                Some((key, key_span)) => match lines.get(&key) {
                    Some(first) => self
                        .findings
                        .push(duplicate(&top_key, &key, key_span, *first)),
                    None => {
                        lines.insert(Rc::clone(&key), key_span.line);
                        entries.push(Entry {
                            key,
                            key_span,
                            value: built.node,
                        });
                    }
                },
            },
        }
        Ok(())
    }

    fn is_key_expected(&self) -> bool {
        matches!(
            self.open.last(),
            Some(Open {
                content: Content::Mapping { key: None, .. },
                ..
            })
        )
    }

    /// The top-level key whose value is the innermost open mapping.
    fn top_key(&self) -> Option<Rc<str>> {
        match self.open.as_slice() {
            [
                Open {
                    content:
                        Content::Mapping {
                            key: Some((key, _)),
                            ..
                        },
                    ..
                },
                _,
            ] => Some(Rc::clone(key)),
            _ => None,
        }
    }
}

fn key_text(node: &Node) -> Result<Rc<str>, Finding> {
    match &node.kind {
        Kind::String(text) if !text.is_empty() => Ok(Rc::clone(text)),
        _ => Err(Finding::new(
            Code::E100,
            node.span,
            format!("expected a key, but it is {}", node.describe()),
        )),
    }
}

/// A repeated key has the code of what it names: a step, a terminal or anything else.
fn duplicate(top_key: &Option<Rc<str>>, key: &str, span: Span, first_line: u32) -> Finding {
    let (code, noun) = match top_key.as_deref() {
        Some("steps") => (Code::E105, "step"),
        Some("terminals") => (Code::E107, "terminal"),
        _ => (Code::E100, "key"),
    };
    Finding::new(code, span, format!("duplicate {noun} {}", quote(key)))
        .hint(format!("the first one is at line {first_line}"))
}
