//! Finds several paths in one JSON text with a single pass.

use super::{container_end, is_key, is_space, string_end};
use crate::definition::Segment;
use std::ops::Range;

/// The wanted paths, as a tree: a node is a position that some path leads to or through.
pub(crate) struct Paths<'p> {
    nodes: Vec<Node<'p>>,
    count: usize,
}

#[derive(Default)]
struct Node<'p> {
    /// The nodes one segment deeper.
    children: Vec<(&'p Segment, usize)>,
    /// The indexes of the paths that end here.
    ends: Vec<usize>,
}

/// A container that the walk is inside.
struct Frame {
    node: usize,
    start: usize,
    kind: Kind,
}

enum Kind {
    Object,
    Array {
        /// The index of the next element.
        next: u32,
    },
}

impl<'p> Paths<'p> {
    /// The root.
    const ROOT: usize = 0;

    /// Builds the tree; values are returned in the order of `paths`.
    pub(crate) fn new(paths: impl IntoIterator<Item = &'p [Segment]>) -> Self {
        let mut tree = Self {
            nodes: vec![Node::default()],
            count: 0,
        };
        for segments in paths {
            let mut node = Self::ROOT;
            for segment in segments {
                node = tree.child(node, segment);
            }
            tree.nodes[node].ends.push(tree.count);
            tree.count += 1;
        }
        tree
    }

    fn child(&mut self, node: usize, segment: &'p Segment) -> usize {
        let children = &self.nodes[node].children;
        if let Some((_, child)) = children.iter().find(|(known, _)| *known == segment) {
            return *child;
        }
        let child = self.nodes.len();
        self.nodes.push(Node::default());
        self.nodes[node].children.push((segment, child));
        child
    }

    /// The range of each path's value in `text`, which must be valid JSON; `None` if the value does not exist. If an
    /// object repeats a field, the last one counts, as in every JSON decoder.
    pub(crate) fn find(&self, text: &str) -> Vec<Option<Range<usize>>> {
        let mut walk = Walk {
            paths: self,
            bytes: text.as_bytes(),
            text,
            position: 0,
            found: vec![None; self.count],
            frames: Vec::new(),
        };
        walk.skip_space();
        walk.enter(Self::ROOT);
        while let Some(frame) = walk.frames.pop() {
            walk.step(frame);
        }
        walk.found
    }
}

/// A single pass over a text.
struct Walk<'a, 'p> {
    paths: &'a Paths<'p>,
    text: &'a str,
    bytes: &'a [u8],
    position: usize,
    found: Vec<Option<Range<usize>>>,
    /// The containers around the current position that paths lead into, innermost last.
    frames: Vec<Frame>,
}

impl Walk<'_, '_> {
    /// Handles the value of `node` at the current position: skips it, or walks into it if paths lead deeper.
    fn enter(&mut self, node: usize) {
        self.forget(node);
        let start = self.position;
        let kind = match self.bytes.get(start) {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array { next: 0 },
            _ => return self.pass(node, start),
        };
        if self.paths.nodes[node].children.is_empty() {
            return self.pass(node, start);
        }
        self.position += 1;
        self.frames.push(Frame { node, start, kind });
    }

    /// Skips the value at the current position, at which paths end.
    fn pass(&mut self, node: usize, start: usize) {
        self.position = self.value_end();
        self.end_paths(node, start);
    }

    fn end_paths(&mut self, node: usize, start: usize) {
        for path in &self.paths.nodes[node].ends {
            self.found[*path] = Some(start..self.position);
        }
    }

    /// Handles the next field or element of a container, or leaves the container.
    fn step(&mut self, mut frame: Frame) {
        self.skip_space();
        match self.bytes.get(self.position) {
            Some(b',') => {
                self.position += 1;
                self.skip_space();
            }
            Some(b'}' | b']') | None => {
                self.position = (self.position + 1).min(self.bytes.len());
                return self.end_paths(frame.node, frame.start);
            }
            Some(_) => {}
        }
        let child = match &mut frame.kind {
            Kind::Object => {
                let start = self.position;
                self.position = self.value_end();
                let key = self.text.get(start..self.position).unwrap_or_default();
                let is_string = key.len() >= 2 && key.starts_with('"');
                self.skip_space();
                // The colon.
                self.position = (self.position + 1).min(self.bytes.len());
                self.skip_space();
                self.child(frame.node, |segment| match segment {
                    Segment::Field(name) => is_string && is_key(key, name),
                    Segment::Index(_) => false,
                })
            }
            Kind::Array { next } => {
                let index = *next;
                *next += 1;
                self.child(frame.node, |segment| *segment == Segment::Index(index))
            }
        };
        self.frames.push(frame);
        match child {
            Some(child) => self.enter(child),
            None => self.position = self.value_end(),
        }
    }

    fn child(&self, node: usize, is_next: impl Fn(&Segment) -> bool) -> Option<usize> {
        let children = &self.paths.nodes[node].children;
        let child = children.iter().find(|(segment, _)| is_next(segment));
        child.map(|(_, child)| *child)
    }

    /// Discards what an earlier field of the same name contributed.
    fn forget(&mut self, node: usize) {
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            let node = &self.paths.nodes[node];
            for path in &node.ends {
                self.found[*path] = None;
            }
            nodes.extend(node.children.iter().map(|(_, child)| *child));
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.bytes[self.position..];
        let spaces = rest.iter().take_while(|byte| is_space(char::from(**byte)));
        self.position += spaces.count();
    }

    /// The position after the current value. Consumes at least one byte, so that the walk always ends.
    fn value_end(&self) -> usize {
        let start = self.position;
        let end = match self.bytes.get(start) {
            Some(b'"') => string_end(self.bytes, start),
            Some(b'{' | b'[') => start + container_end(&self.bytes[start..]),
            _ => {
                let rest = &self.bytes[start..];
                let is_end =
                    |byte: &u8| is_space(char::from(*byte)) || matches!(byte, b',' | b']' | b'}');
                start + rest.iter().position(is_end).unwrap_or(rest.len())
            }
        };
        end.max(start + 1).min(self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{find, tests::path};
    use proptest::prelude::*;

    fn found<'t>(text: &'t str, paths: &[&str]) -> Vec<Option<&'t str>> {
        let paths: Vec<Vec<Segment>> = paths.iter().map(|text| path(text)).collect();
        let tree = Paths::new(paths.iter().map(Vec::as_slice));
        let ranges = tree.find(text).into_iter();
        ranges
            .map(|range| range.map(|range| &text[range]))
            .collect()
    }

    #[test]
    fn all_paths_are_found_in_one_pass() {
        let text = r#" {"a": {"b": [1, {"c": "x,}]"}, 2.50e1 ]}, "e\u0041": true, "a2":null} "#;
        let paths = [
            "a.b.1.c", "a.b", "a.b.2", "eA", "", "a2", "a.x", "a.b.3", "a.b.0.c", "a.b",
        ];
        assert_eq!(
            found(text, &paths),
            [
                Some(r#""x,}]""#),
                Some(r#"[1, {"c": "x,}]"}, 2.50e1 ]"#),
                Some("2.50e1"),
                Some("true"),
                Some(text.trim()),
                Some("null"),
                None,
                None,
                None,
                Some(r#"[1, {"c": "x,}]"}, 2.50e1 ]"#),
            ]
        );
        assert_eq!(found("7", &["", "a"]), [Some("7"), None]);
        assert_eq!(found("{}", &["a", "0"]), [None, None]);
        assert_eq!(found("[]", &["a", "0"]), [None, None]);
    }

    #[test]
    fn of_equal_fields_the_last_one_counts_with_all_that_is_in_it() {
        let text = r#"{"a":{"b":1,"c":2},"a":{"b":3}}"#;
        assert_eq!(
            found(text, &["a.b", "a.c", "a"]),
            [Some("3"), None, Some(r#"{"b":3}"#)]
        );
        assert_eq!(
            found(r#"{"a":{"b":1},"a":2}"#, &["a.b", "a"]),
            [None, Some("2")]
        );
    }

    #[test]
    fn a_text_that_is_no_json_ends_the_walk_too() {
        for text in [
            "",
            "{",
            "[",
            "{\"a",
            "{\"a\"",
            "{\"a\":",
            "[1,",
            "{a}",
            "]",
            "{]",
            "[}",
            "{\"a\" 1 2 3",
        ] {
            let _ = found(text, &["a.b", "0.a", "a"]);
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("1".to_owned()),
            Just("null".to_owned()),
            Just(r#""a\"b,}]{""#.to_owned()),
            Just("[]".to_owned()),
            Just("{}".to_owned()),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let name = prop_oneof![Just("a"), Just("b"), Just("c"), Just("\\u0061")];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|values| format!("[ {} ]", values.join(" , "))),
                prop::collection::vec((name, inner), 0..4).prop_map(|fields| {
                    let fields = fields
                        .iter()
                        .map(|(name, value)| format!("\"{name}\" : {value}"));
                    format!("{{{}}}", fields.collect::<Vec<_>>().join(",\n"))
                }),
            ]
        })
    }

    fn segments() -> impl Strategy<Value = Vec<Segment>> {
        let segment = prop_oneof![
            prop_oneof![Just("a"), Just("b"), Just("c")]
                .prop_map(|name| Segment::Field(name.to_owned())),
            (0_u32..3).prop_map(Segment::Index),
        ];
        prop::collection::vec(segment, 0..4)
    }

    proptest! {
        #[test]
        fn together_they_find_what_each_finds_alone(
            text in json(),
            paths in prop::collection::vec(segments(), 0..8),
        ) {
            let tree = Paths::new(paths.iter().map(Vec::as_slice));
            for (range, segments) in tree.find(&text).into_iter().zip(&paths) {
                prop_assert_eq!(range.map(|range| &text[range]), find(&text, segments));
            }
        }
    }
}
