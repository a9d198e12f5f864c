//! Regular expressions: text to the engine's instructions.
//!
//! A maintained parser reads the text. The syntax is that of RE2: `\d`, `\w`, `\s`, `\b` and `(?i)` know ASCII only, and
//! there are no look-around, back-references and `\p`.

use flotilla_engine::expression::{Assertion, CharClass, Instruction, Pattern};
use flotilla_engine::limits::PATTERN_INSTRUCTIONS_MAX;
use std::collections::BTreeMap;

use regex_syntax::ast::{
    self, AssertionKind, Ast, ClassAsciiKind, ClassBracketed, ClassPerl, ClassPerlKind, ClassSet,
    ClassSetItem, Flag, Flags, FlagsItemKind, GroupKind, RepetitionKind, RepetitionRange,
};

/// How deep groups and classes nest.
const NESTING_MAX: u32 = 64;

/// Compiles a pattern.
///
/// # Errors
/// If it is not a regular expression, or one that is not supported; the text says why.
pub(super) fn compile(pattern: &str) -> Result<Pattern, String> {
    let parsed = ast::parse::ParserBuilder::new()
        .nest_limit(NESTING_MAX)
        .octal(false)
        .build()
        .parse(pattern)
        .map_err(|error| format!("invalid regular expression: {}", error.kind()))?;
    let mut compiler = Compiler {
        instructions: Vec::new(),
        classes: Vec::new(),
        positions: BTreeMap::new(),
        brackets: BTreeMap::new(),
        options: Options::default(),
        nodes_left: NODES_MAX,
    };
    compiler.node(&parsed)?;
    compiler.push(Instruction::Match)?;
    Ok(Pattern {
        instructions: compiler.instructions,
        classes: compiler.classes,
    })
}

/// Parts of the pattern that are compiled, each repetition of a part counted: one may add no instruction.
const NODES_MAX: usize = 4 * PATTERN_INSTRUCTIONS_MAX;
/// The largest number in a repetition, as in RE2.
const REPETITIONS_MAX: u32 = 1_000;

/// What `(?ims)` sets.
#[derive(Clone, Copy, Default)]
struct Options {
    ignores_case: bool,
    is_multi_line: bool,
    dot_matches_newline: bool,
}

struct Compiler {
    instructions: Vec<Instruction>,
    classes: Vec<CharClass>,
    /// Where each class is among the classes.
    positions: BTreeMap<Ranges, u16>,
    /// The same of the classes in brackets, by where they begin and whether case is ignored: a repeated class is computed
    /// once.
    brackets: BTreeMap<(usize, bool), u16>,
    options: Options,
    nodes_left: usize,
}

/// A set of characters under construction: inclusive ranges.
type Ranges = Vec<(char, char)>;

const ALL: (char, char) = ('\0', char::MAX);
const DIGITS: (char, char) = ('0', '9');
const LOWER: (char, char) = ('a', 'z');
const UPPER: (char, char) = ('A', 'Z');

impl Compiler {
    fn node(&mut self, node: &Ast) -> Result<(), String> {
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or_else(too_large)?;
        match node {
            Ast::Empty(_) => Ok(()),
            Ast::Flags(flags) => self.set_flags(&flags.flags),
            Ast::Literal(literal) => self.class(vec![(literal.c, literal.c)], false),
            Ast::Dot(_) if self.options.dot_matches_newline => self.class(vec![ALL], false),
            Ast::Dot(_) => self.class(vec![('\n', '\n')], true),
            Ast::Assertion(assertion) => self.assertion(&assertion.kind),
            Ast::ClassUnicode(_) => Err(unsupported("\\p")),
            Ast::ClassPerl(class) => self.class(perl(class), false),
            Ast::ClassBracketed(class) => {
                let key = (class.span.start.offset, self.options.ignores_case);
                let position = match self.brackets.get(&key) {
                    Some(position) => *position,
                    None => {
                        let ranges = self.bracketed(class)?;
                        let position = self.position(ranges, class.negated)?;
                        self.brackets.insert(key, position);
                        position
                    }
                };
                self.push(Instruction::Char(position)).map(|_| ())
            }
            Ast::Repetition(repetition) => self.repetition(&repetition.ast, &repetition.op.kind),
            Ast::Group(group) => {
                let outer = self.options;
                if let GroupKind::NonCapturing(flags) = &group.kind {
                    self.set_flags(flags)?;
                }
                self.node(&group.ast)?;
                self.options = outer;
                Ok(())
            }
            Ast::Alternation(alternation) => self.alternation(&alternation.asts),
            Ast::Concat(concat) => concat.asts.iter().try_for_each(|node| self.node(node)),
        }
    }

    fn set_flags(&mut self, flags: &Flags) -> Result<(), String> {
        let mut is_set = true;
        for item in &flags.items {
            match item.kind {
                FlagsItemKind::Negation => is_set = false,
                FlagsItemKind::Flag(Flag::CaseInsensitive) => self.options.ignores_case = is_set,
                FlagsItemKind::Flag(Flag::MultiLine) => self.options.is_multi_line = is_set,
                FlagsItemKind::Flag(Flag::DotMatchesNewLine) => {
                    self.options.dot_matches_newline = is_set;
                }
                // Whether a text matches does not depend on greed.
                FlagsItemKind::Flag(Flag::SwapGreed) => {}
                FlagsItemKind::Flag(Flag::Unicode | Flag::CRLF | Flag::IgnoreWhitespace) => {
                    return Err(unsupported("a flag other than i, m, s and U"));
                }
            }
        }
        Ok(())
    }

    fn assertion(&mut self, kind: &AssertionKind) -> Result<(), String> {
        let assertion = match kind {
            AssertionKind::StartLine if self.options.is_multi_line => Assertion::LineStart,
            AssertionKind::EndLine if self.options.is_multi_line => Assertion::LineEnd,
            AssertionKind::StartLine | AssertionKind::StartText => Assertion::TextStart,
            AssertionKind::EndLine | AssertionKind::EndText => Assertion::TextEnd,
            AssertionKind::WordBoundary => Assertion::WordBoundary,
            AssertionKind::NotWordBoundary => Assertion::NotWordBoundary,
            _ => return Err(unsupported("a word boundary other than \\b and \\B")),
        };
        self.push(Instruction::Assert(assertion)).map(|_| ())
    }

    fn alternation(&mut self, choices: &[Ast]) -> Result<(), String> {
        let Some((last, others)) = choices.split_last() else {
            return Ok(());
        };
        let outer = self.options;
        let mut jumps = Vec::new();
        for choice in others {
            let split = self.push(Instruction::Match)?;
            self.node(choice)?;
            jumps.push(self.push(Instruction::Match)?);
            self.instructions[usize::from(split)] = Instruction::Split(split + 1, self.next());
        }
        self.node(last)?;
        self.options = outer;
        let end = self.next();
        for jump in jumps {
            self.instructions[usize::from(jump)] = Instruction::Jump(end);
        }
        Ok(())
    }

    fn repetition(&mut self, node: &Ast, kind: &RepetitionKind) -> Result<(), String> {
        let (least, most) = match kind {
            RepetitionKind::ZeroOrOne => (0, Some(1)),
            RepetitionKind::ZeroOrMore => (0, None),
            RepetitionKind::OneOrMore => (1, None),
            RepetitionKind::Range(RepetitionRange::Exactly(count)) => (*count, Some(*count)),
            RepetitionKind::Range(RepetitionRange::AtLeast(least)) => (*least, None),
            RepetitionKind::Range(RepetitionRange::Bounded(least, most)) => (*least, Some(*most)),
        };
        let most_count = most.unwrap_or(least);
        if most_count > REPETITIONS_MAX {
            return Err(format!(
                "invalid regular expression: expected at most {REPETITIONS_MAX} repetitions, but found {most_count}"
            ));
        }
        for _ in 0..least {
            self.node(node)?;
        }
        match most {
            None => self.star(node),
            Some(most) => {
                let mut splits = Vec::new();
                for _ in least..most {
                    splits.push(self.push(Instruction::Match)?);
                    self.node(node)?;
                }
                let end = self.next();
                for split in splits {
                    self.instructions[usize::from(split)] = Instruction::Split(split + 1, end);
                }
                Ok(())
            }
        }
    }

    fn star(&mut self, node: &Ast) -> Result<(), String> {
        let split = self.push(Instruction::Match)?;
        self.node(node)?;
        self.push(Instruction::Jump(split))?;
        self.instructions[usize::from(split)] = Instruction::Split(split + 1, self.next());
        Ok(())
    }

    fn class(&mut self, ranges: Ranges, is_negated: bool) -> Result<(), String> {
        let position = self.position(ranges, is_negated)?;
        self.push(Instruction::Char(position)).map(|_| ())
    }

    /// Where a class is among the classes; it is added if it is new.
    fn position(&mut self, ranges: Ranges, is_negated: bool) -> Result<u16, String> {
        let ranges = self.folded(ranges);
        let ranges = if is_negated {
            negated(ranges)
        } else {
            merged(ranges)
        };
        let next = u16::try_from(self.classes.len()).map_err(|_| too_large())?;
        let position = *self.positions.entry(ranges.clone()).or_insert(next);
        if position == next {
            self.classes.push(CharClass(ranges));
        }
        Ok(position)
    }

    /// With the other case of each ASCII letter, if case is ignored.
    fn folded(&self, mut ranges: Ranges) -> Ranges {
        if !self.options.ignores_case {
            return ranges;
        }
        let folded: Ranges = ranges
            .iter()
            .flat_map(|range| {
                let lower = overlap(*range, UPPER)
                    .map(|(first, last)| (first.to_ascii_lowercase(), last.to_ascii_lowercase()));
                let upper = overlap(*range, LOWER)
                    .map(|(first, last)| (first.to_ascii_uppercase(), last.to_ascii_uppercase()));
                [lower, upper].into_iter().flatten()
            })
            .collect();
        ranges.extend(folded);
        ranges
    }

    /// The characters of a class in brackets.
    fn bracketed(&self, class: &ClassBracketed) -> Result<Ranges, String> {
        let ClassSet::Item(item) = &class.kind else {
            return Err(unsupported("an operation on classes (&&, --, ~~)"));
        };
        let mut ranges = Vec::new();
        self.class_item(item, &mut ranges)?;
        Ok(ranges)
    }

    fn class_item(&self, item: &ClassSetItem, ranges: &mut Ranges) -> Result<(), String> {
        match item {
            ClassSetItem::Empty(_) => {}
            ClassSetItem::Literal(literal) => ranges.push((literal.c, literal.c)),
            ClassSetItem::Range(range) => ranges.push((range.start.c, range.end.c)),
            ClassSetItem::Ascii(class) => {
                let of = ascii(&class.kind);
                ranges.extend(if class.negated {
                    negated(self.folded(of))
                } else {
                    of
                });
            }
            ClassSetItem::Unicode(_) => return Err(unsupported("\\p")),
            ClassSetItem::Perl(class) => ranges.extend(perl(class)),
            // RE2 reads the inner `[` as a character.
            ClassSetItem::Bracketed(_) => return Err(unsupported("a class in a class")),
            ClassSetItem::Union(union) => {
                for item in &union.items {
                    self.class_item(item, ranges)?;
                }
            }
        }
        Ok(())
    }

    fn push(&mut self, instruction: Instruction) -> Result<u16, String> {
        if self.instructions.len() == PATTERN_INSTRUCTIONS_MAX {
            return Err(too_large());
        }
        let position = self.next();
        self.instructions.push(instruction);
        Ok(position)
    }

    /// The position of the next instruction.
    fn next(&self) -> u16 {
        u16::try_from(self.instructions.len()).expect("instructions are bounded")
    }
}

fn unsupported(what: &str) -> String {
    format!("invalid regular expression: {what} is not supported")
}

fn too_large() -> String {
    format!(
        "expected a regular expression of at most {PATTERN_INSTRUCTIONS_MAX} instructions, but it has more"
    )
}

/// The part of a range that lies in another.
fn overlap(range: (char, char), other: (char, char)) -> Option<(char, char)> {
    let (first, last) = (range.0.max(other.0), range.1.min(other.1));
    (first <= last).then_some((first, last))
}

/// The ranges in ascending order, without overlaps.
fn merged(mut ranges: Ranges) -> Ranges {
    ranges.sort_unstable();
    let mut merged: Ranges = Vec::with_capacity(ranges.len());
    for (first, last) in ranges {
        match merged.last_mut() {
            Some(before) if next_after(before.1).is_none_or(|next| first <= next) => {
                before.1 = before.1.max(last);
            }
            _ => merged.push((first, last)),
        }
    }
    merged
}

/// All other characters.
fn negated(ranges: Ranges) -> Ranges {
    let mut others = Vec::new();
    let mut next = Some('\0');
    for (first, last) in merged(ranges) {
        if let (Some(from), Some(before)) = (next, before(first))
            && from <= before
        {
            others.push((from, before));
        }
        next = next_after(last);
    }
    others.extend(next.map(|from| (from, char::MAX)));
    others
}

fn next_after(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}

fn before(character: char) -> Option<char> {
    ('\0'..character).next_back()
}

fn perl(class: &ClassPerl) -> Ranges {
    let of = match class.kind {
        ClassPerlKind::Digit => vec![DIGITS],
        ClassPerlKind::Space => spaces(),
        ClassPerlKind::Word => word(),
    };
    if class.negated { negated(of) } else { of }
}

fn word() -> Ranges {
    vec![DIGITS, LOWER, UPPER, ('_', '_')]
}

/// Tab, newline, form feed, carriage return and space, as in RE2.
fn spaces() -> Ranges {
    vec![('\t', '\n'), ('\x0c', '\r'), (' ', ' ')]
}

fn ascii(kind: &ClassAsciiKind) -> Ranges {
    match kind {
        ClassAsciiKind::Alnum => vec![DIGITS, LOWER, UPPER],
        ClassAsciiKind::Alpha => vec![LOWER, UPPER],
        ClassAsciiKind::Ascii => vec![('\0', '\x7f')],
        ClassAsciiKind::Blank => vec![('\t', '\t'), (' ', ' ')],
        ClassAsciiKind::Cntrl => vec![('\0', '\x1f'), ('\x7f', '\x7f')],
        ClassAsciiKind::Digit => vec![DIGITS],
        ClassAsciiKind::Graph => vec![('!', '~')],
        ClassAsciiKind::Lower => vec![LOWER],
        ClassAsciiKind::Print => vec![(' ', '~')],
        ClassAsciiKind::Punct => vec![('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        ClassAsciiKind::Space => vec![('\t', '\r'), (' ', ' ')],
        ClassAsciiKind::Upper => vec![UPPER],
        ClassAsciiKind::Word => word(),
        ClassAsciiKind::Xdigit => vec![DIGITS, ('a', 'f'), ('A', 'F')],
    }
}
