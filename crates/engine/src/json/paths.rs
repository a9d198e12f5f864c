//! Finds several paths in one JSON text with a single pass.
//!
//! The pass costs the length of the text times the logarithm of the number of paths: a client controls both.

use super::{container_end, is_space, key_name, string_end};
use crate::definition::Segment;
use std::ops::Range;

/// The wanted paths, as a tree: a node is a position that some path leads to or through.
pub(crate) struct Paths<'p> {
    nodes: Vec<Node<'p>>,
    /// The node of each path.
    ends: Vec<usize>,
}

/// The nodes one segment deeper, sorted.
#[derive(Default)]
struct Node<'p> {
    fields: Vec<(&'p str, usize)>,
    elements: Vec<(u32, usize)>,
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

impl Node<'_> {
    fn is_leaf(&self) -> bool {
        self.fields.is_empty() && self.elements.is_empty()
    }
}

impl<'p> Paths<'p> {
    /// The root.
    const ROOT: usize = 0;

    /// Builds the tree; values are returned in the order of `paths`.
    pub(crate) fn new(paths: impl IntoIterator<Item = &'p [Segment]>) -> Self {
        let mut tree = Self {
            nodes: vec![Node::default()],
            ends: Vec::new(),
        };
        for segments in paths {
            let mut node = Self::ROOT;
            for segment in segments {
                node = tree.child(node, segment);
            }
            tree.ends.push(node);
        }
        tree
    }

    fn child(&mut self, node: usize, segment: &'p Segment) -> usize {
        let new = self.nodes.len();
        let Node { fields, elements } = &mut self.nodes[node];
        let child = match segment {
            Segment::Field(name) => child_or_insert(fields, name.as_str(), new),
            Segment::Index(index) => child_or_insert(elements, *index, new),
        };
        if child == new {
            self.nodes.push(Node::default());
        }
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
            found: vec![Found::default(); self.nodes.len()],
            frames: Vec::new(),
        };
        walk.skip_space();
        walk.enter(Self::ROOT);
        while let Some(frame) = walk.frames.pop() {
            walk.step(frame);
        }
        let ends = self.ends.iter();
        ends.map(|node| walk.found[*node].value.clone()).collect()
    }
}

/// The child at `key`, or `new`, which is inserted there.
fn child_or_insert<K: Ord>(children: &mut Vec<(K, usize)>, key: K, new: usize) -> usize {
    match children.binary_search_by(|(known, _)| known.cmp(&key)) {
        Ok(place) => children[place].1,
        Err(place) => {
            children.insert(place, (key, new));
            new
        }
    }
}

fn child<K: Ord>(children: &[(K, usize)], key: &K) -> Option<usize> {
    let place = children.binary_search_by(|(known, _)| known.cmp(key));
    place.ok().map(|place| children[place].1)
}

/// What the walk has found of a node.
#[derive(Clone, Default)]
struct Found {
    value: Option<Range<usize>>,
    /// The nodes one segment deeper that the walk has entered.
    entered: Vec<usize>,
}

/// A single pass over a text.
struct Walk<'a, 'p> {
    paths: &'a Paths<'p>,
    text: &'a str,
    bytes: &'a [u8],
    position: usize,
    /// By node.
    found: Vec<Found>,
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
        if self.paths.nodes[node].is_leaf() {
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
        self.found[node].value = Some(start..self.position);
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
                let fields = &self.paths.nodes[frame.node].fields;
                is_string
                    .then(|| child(fields, &key_name(key).as_ref()))
                    .flatten()
            }
            Kind::Array { next } => {
                let index = *next;
                *next += 1;
                child(&self.paths.nodes[frame.node].elements, &index)
            }
        };
        let parent = frame.node;
        self.frames.push(frame);
        match child {
            Some(child) => {
                if self.found[child].value.is_none() {
                    self.found[parent].entered.push(child);
                }
                self.enter(child);
            }
            None => self.position = self.value_end(),
        }
    }

    /// Discards what an earlier field of the same name contributed.
    fn forget(&mut self, node: usize) {
        let mut nodes = vec![node];
        while let Some(node) = nodes.pop() {
            let Found { entered, .. } = std::mem::take(&mut self.found[node]);
            nodes.extend(entered);
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
    fn invalid_json_ends_the_walk_too() {
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
