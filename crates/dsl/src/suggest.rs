//! Suggests the nearest known word for a misspelt one.

/// Longer words are not compared: the distance costs the product of the lengths.
const WORD_CHARACTERS_MAX: usize = 40;
/// The maximum of candidates to compare.
const CANDIDATES_MAX: usize = 1_000;

/// The candidate that `word` was probably meant to be; `None` if none is similar.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let word = fold(word)?;
    let distance_max = (word.len() / 3).clamp(1, 3);
    candidates
        .take(CANDIDATES_MAX)
        .filter_map(|candidate| {
            Some((distance(&word, &fold(candidate)?, distance_max)?, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether `word` differs from `meant` by at most one edit, ignoring case.
pub(crate) fn is_misspelling_of(word: &str, meant: &str) -> bool {
    let folded = fold(word).zip(fold(meant));
    folded.is_some_and(|(word, meant)| distance(&word, &meant, 1).is_some())
}

/// The characters to compare, folded so that case and the kind of dash do not matter.
fn fold(word: &str) -> Option<Vec<char>> {
    let characters: Vec<char> = word
        .chars()
        .take(WORD_CHARACTERS_MAX + 1)
        .map(|character| {
            if character == '-' {
                '_'
            } else {
                character.to_ascii_lowercase()
            }
        })
        .collect();
    (characters.len() <= WORD_CHARACTERS_MAX).then_some(characters)
}

/// The edit distance (insertions, deletions, replacements, swaps of neighbors), if it is at most
/// `max`.
fn distance(from: &[char], to: &[char], max: usize) -> Option<usize> {
    if from.len().abs_diff(to.len()) > max {
        return None;
    }
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, &a) in from.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &b) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let is_swap = row > 0 && column > 0 && a == to[column - 1] && b == from[row - 1];
            if is_swap {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.pop().filter(|&distance| distance <= max)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    fn among(word: &str) -> Option<&'static str> {
        nearest(
            word,
            ["transitions", "retry", "poll", "inputMapping"].into_iter(),
        )
    }

    #[test]
    fn a_small_slip_finds_the_word_that_was_meant() {
        assert_eq!(among("transition"), Some("transitions"));
        assert_eq!(among("rerty"), Some("retry"));
        assert_eq!(among("InputMapping"), Some("inputMapping"));
    }

    #[test]
    fn a_word_that_is_far_from_all_finds_none() {
        assert_eq!(among("schedule"), None);
        assert_eq!(among(&"x".repeat(1_000)), None);
    }
}
