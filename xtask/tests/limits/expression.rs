//! The value of an expression as constants are written: numbers, names, `<<`, `*`, `/`, `+`, `-`,
//! brackets, `as TYPE`.

use std::collections::BTreeMap;

/// The value of the expression; `None` if it is of another kind.
pub(crate) fn value(text: &str, known: &BTreeMap<String, u64>) -> Option<u64> {
    let tokens = tokens(text);
    let mut parser = Parser {
        tokens: &tokens,
        known,
    };
    let value = parser.shift()?;
    parser.tokens.is_empty().then_some(value)
}

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut is_word = false;
    for character in text.chars() {
        let is_part = character.is_alphanumeric() || matches!(character, '_' | ':');
        let joins = (is_part && is_word)
            || (character == '<' && tokens.last().is_some_and(|token| token == "<"));
        match tokens.last_mut().filter(|_| joins) {
            Some(last) => last.push(character),
            None if character.is_whitespace() => {}
            None => tokens.push(character.to_string()),
        }
        is_word = is_part;
    }
    tokens
}

struct Parser<'a> {
    tokens: &'a [String],
    known: &'a BTreeMap<String, u64>,
}

impl<'a> Parser<'a> {
    fn shift(&mut self) -> Option<u64> {
        let mut value = self.sum()?;
        while self.take("<<") {
            value = value.checked_shl(u32::try_from(self.sum()?).ok()?)?;
        }
        Some(value)
    }

    fn sum(&mut self) -> Option<u64> {
        let mut value = self.product()?;
        while let Some(operator) = self.take_any(&["+", "-"]) {
            let right = self.product()?;
            value = match operator {
                "+" => value.checked_add(right)?,
                _ => value.checked_sub(right)?,
            };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<u64> {
        let mut value = self.atom()?;
        while let Some(operator) = self.take_any(&["*", "/", "as"]) {
            value = match operator {
                "*" => value.checked_mul(self.atom()?)?,
                "/" => value.checked_div(self.atom()?)?,
                _ => {
                    self.next()?;
                    value
                }
            };
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<u64> {
        if self.take("(") {
            let value = self.shift()?;
            return self.take(")").then_some(value);
        }
        let token = self.next()?;
        let number = token.replace('_', "").parse();
        let name = token.rsplit("::").next()?;
        number.ok().or_else(|| self.known.get(name).copied())
    }

    fn take(&mut self, expected: &str) -> bool {
        self.take_any(&[expected]).is_some()
    }

    /// Takes the next token if it is one of these, and returns which.
    fn take_any<'t>(&mut self, expected: &[&'t str]) -> Option<&'t str> {
        let next = self.tokens.first()?;
        let found = expected.iter().copied().find(|token| token == next)?;
        self.tokens = &self.tokens[1..];
        Some(found)
    }

    fn next(&mut self) -> Option<&'a str> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first)
    }
}

#[test]
fn constants_have_their_values() {
    let known = BTreeMap::from([("A".to_owned(), 6)]);
    let cases = [
        ("1 << 20", Some(1 << 20)),
        ("7 * 24 * 3_600_000", Some(604_800_000)),
        ("(3 << 20) / A", Some(524_288)),
        ("2 * A + 1", Some(13)),
        ("A as u64", Some(6)),
        ("crate::limits::A", Some(6)),
        ("B", None),
        ("1 <", None),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text, &known), expected, "{text}");
    }
}
