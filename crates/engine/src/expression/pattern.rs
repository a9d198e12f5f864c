//! Regular expressions, executed in time linear in the text.
//!
//! The crate `dsl` compiles a pattern to a [`Pattern`] when the definition is created. The machine keeps the set of
//! instructions at which some match may stand, and steps it along the text: no text or pattern makes it go back.

use crate::limits::PATTERN_INSTRUCTIONS_MAX;
use serde::{Deserialize, Serialize};

/// A compiled regular expression. Invariant: at most [`PATTERN_INSTRUCTIONS_MAX`] instructions, the last one
/// [`Instruction::Match`]; every position is one of its instructions or classes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pattern {
    /// Execution begins at the first one.
    pub instructions: Vec<Instruction>,
    /// The classes that instructions refer to, each once.
    pub classes: Vec<CharClass>,
}

/// An instruction of a [`Pattern`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Instruction {
    /// Takes one character of the class at this position.
    Char(u16),
    /// Continues at both positions.
    Split(u16, u16),
    /// Continues at the position.
    Jump(u16),
    /// Continues if the assertion holds here.
    Assert(Assertion),
    /// The pattern matches.
    Match,
}

/// A set of characters: inclusive ranges in ascending order, which do not touch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CharClass(pub Vec<(char, char)>);

/// A condition on a position of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Assertion {
    /// The beginning of the text.
    TextStart,
    /// The end of the text.
    TextEnd,
    /// The beginning of the text or of a line.
    LineStart,
    /// The end of the text or of a line.
    LineEnd,
    /// Between a word character, which is an ASCII letter, digit or underscore, and another one.
    WordBoundary,
    /// Not at a [`Self::WordBoundary`].
    NotWordBoundary,
}

impl CharClass {
    fn contains(&self, character: char) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= character);
        after > 0 && character <= self.0[after - 1].1
    }
}

impl Assertion {
    fn holds(self, Gap { before, after }: Gap) -> bool {
        let is_word = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        match self {
            Self::TextStart => before.is_none(),
            Self::TextEnd => after.is_none(),
            Self::LineStart => before.is_none_or(|c| c == '\n'),
            Self::LineEnd => after.is_none_or(|c| c == '\n'),
            Self::WordBoundary => is_word(before) != is_word(after),
            Self::NotWordBoundary => is_word(before) == is_word(after),
        }
    }
}

/// A position between two characters; `None` at the ends of the text.
#[derive(Clone, Copy)]
struct Gap {
    before: Option<char>,
    after: Option<char>,
}

/// The instructions at which some match may stand.
struct Standing {
    /// Those that take a character.
    positions: Vec<u16>,
    /// Which instructions were reached in this step.
    is_reached: Vec<bool>,
    /// Instructions that are still to be reached.
    open: Vec<u16>,
    is_match: bool,
}

impl Pattern {
    /// What executing it over a text costs, as a number of bytes read.
    #[must_use]
    pub fn cost(&self, text: &str) -> usize {
        (text.len() + 1).saturating_mul(self.instructions.len())
    }

    /// Whether some part of the text matches.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        debug_assert!(self.instructions.len() <= PATTERN_INSTRUCTIONS_MAX);
        let mut standing = Standing {
            positions: Vec::new(),
            is_reached: vec![false; self.instructions.len()],
            open: Vec::new(),
            is_match: false,
        };
        let mut taken: Vec<u16> = Vec::new();
        let mut before = None;
        let mut characters = text.chars();
        loop {
            let after = characters.next();
            standing.positions.clear();
            standing.is_reached.fill(false);
            let continued = taken.drain(..).map(|position| position + 1);
            standing.open.extend(continued);
            // A match may begin at every position of the text.
            standing.open.push(0);
            while let Some(position) = standing.open.pop() {
                self.reach(position, Gap { before, after }, &mut standing);
            }
            if standing.is_match {
                return true;
            }
            let Some(character) = after else {
                return false;
            };
            let positions = standing.positions.iter().copied();
            taken.extend(positions.filter(|position| self.takes(*position, character)));
            before = after;
        }
    }

    /// Whether an instruction takes the character.
    fn takes(&self, position: u16, character: char) -> bool {
        match &self.instructions[usize::from(position)] {
            Instruction::Char(class) => self.classes[usize::from(*class)].contains(character),
            Instruction::Split(..)
            | Instruction::Jump(_)
            | Instruction::Assert(_)
            | Instruction::Match => false,
        }
    }

    /// Executes an instruction that takes no character, or keeps one that does.
    fn reach(&self, position: u16, gap: Gap, standing: &mut Standing) {
        if std::mem::replace(&mut standing.is_reached[usize::from(position)], true) {
            return;
        }
        match &self.instructions[usize::from(position)] {
            Instruction::Char(_) => standing.positions.push(position),
            Instruction::Split(one, other) => standing.open.extend([*one, *other]),
            Instruction::Jump(to) => standing.open.push(*to),
            Instruction::Assert(assertion) => {
                if assertion.holds(gap) {
                    standing.open.push(position + 1);
                }
            }
            Instruction::Match => standing.is_match = true,
        }
    }
}
