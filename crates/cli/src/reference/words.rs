//! Splits a shell line into the words that a program receives.

/// The words of a shell line: quotes group; a remark, a pipe, a redirection or `&` ends it.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in line.chars() {
        match character {
            _ if quote == Some(character) => quote = None,
            '\'' | '"' if quote.is_none() => quote = Some(character),
            '#' if quote.is_none() && words.last().is_some_and(String::is_empty) => break,
            '|' | '<' | '>' | '&' if quote.is_none() => break,
            ' ' if quote.is_none() => words.push(String::new()),
            other => words.last_mut().expect("never empty").push(other),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}
