//! Locks of scripts: patterns of plain characters, `.`, `^` and `$`, each character with `*` or without.

use flotilla_engine::definition::Lock;
use flotilla_engine::expression::{Assertion, CharClass, Instruction, Pattern};

/// The lock with this pattern.
pub(crate) fn lock(text: &str) -> Lock {
    let mut program = Pattern {
        instructions: Vec::new(),
        classes: Vec::new(),
    };
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let next = position(program.instructions.len());
        match character {
            '^' => push(&mut program, Instruction::Assert(Assertion::TextStart)),
            '$' => push(&mut program, Instruction::Assert(Assertion::TextEnd)),
            _ => {
                let class = class(&mut program, character);
                if characters.next_if_eq(&'*').is_some() {
                    push(&mut program, Instruction::Split(next + 1, next + 3));
                    push(&mut program, Instruction::Char(class));
                    push(&mut program, Instruction::Jump(next));
                } else {
                    push(&mut program, Instruction::Char(class));
                }
            }
        }
    }
    push(&mut program, Instruction::Match);
    Lock {
        pattern: text.to_owned(),
        program,
    }
}

fn push(program: &mut Pattern, instruction: Instruction) {
    program.instructions.push(instruction);
}

fn position(length: usize) -> u16 {
    u16::try_from(length).expect("a short pattern")
}

fn class(program: &mut Pattern, character: char) -> u16 {
    let range = match character {
        '.' => ('\0', char::MAX),
        plain => (plain, plain),
    };
    let class = CharClass(vec![range]);
    let known = program.classes.iter().position(|known| *known == class);
    let found = known.unwrap_or_else(|| {
        program.classes.push(class);
        program.classes.len() - 1
    });
    position(found)
}
