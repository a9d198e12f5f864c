//! The parts of a command's output that are the same in each run.

/// Replaces a word that differs between runs.
const MASK: &str = "·";

/// The words of the output without the parts that differ between runs: times and derived values, log
/// indexes, digests, the width of columns.
pub(super) fn shape(lines: &[String]) -> Vec<String> {
    let mut shaped: Vec<String> = lines.iter().map(|line| line_shape(line)).collect();
    while shaped.last().is_some_and(String::is_empty) {
        shaped.pop();
    }
    shaped
}

fn line_shape(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for written in line.split_whitespace() {
        // In a history the log index follows the time.
        let is_after_time = words.last().is_some_and(|last| last == MASK);
        let is_place = is_after_time && written.chars().all(|c| c.is_ascii_digit());
        // In a report, how long it took does.
        let is_length = is_after_time && is_length(written);
        words.push(if is_place || is_length {
            String::new()
        } else {
            word_shape(written)
        });
    }
    words.join(" ")
}

fn is_length(word: &str) -> bool {
    let number = word.trim_end_matches(['m', 's']);
    number.len() < word.len() && number.chars().all(|c| c.is_ascii_digit())
}

fn word_shape(word: &str) -> String {
    let bare = word.trim_end_matches([',', '.', ';', ')', '"']);
    let digits_count = bare.chars().filter(char::is_ascii_digit).count();
    let is_number = digits_count > 3 && digits_count == bare.len();
    let is_time = digits_count > 3 && bare.contains([':', '-']) && !bare.contains("run-");
    let is_hex = |c: char| c.is_ascii_hexdigit();
    let is_digest = bare.len() >= 16 && digits_count > 3 && bare.chars().all(is_hex);
    let is_rate = bare
        .strip_suffix("/s")
        .is_some_and(|calls| calls.parse::<u32>().is_ok());
    if is_number || is_time || is_digest || is_rate {
        return word.replacen(bare, MASK, 1);
    }
    word.to_owned()
}

#[test]
fn only_what_differs_between_runs_is_left_out() {
    let of = |line: &str| shape(&[line.to_owned()]);
    assert_eq!(of("a   b"), of("a b"));
    let event = "1  2026-01-02T03:04:05.678Z  9  2";
    assert_eq!(of(event), of("1  2026-11-12T13:14:15.617Z  12  2"));
    assert_ne!(of(event), of("2  2026-01-02T03:04:05.678Z  9  2"));
    assert_ne!(of(event), of("1  2026-01-02T03:04:05.678Z  9  3"));
    let visit = "success  1  2026-01-02T03:04:05.678Z  0ms";
    assert_eq!(of(visit), of("success  1  2026-11-12T13:14:15.617Z  12ms"));
    assert_ne!(of("waits 5ms"), of("waits 6ms"));
    assert_eq!(of("1785000000001-0"), of("1785000000002-0"));
    assert_eq!(of("99/s left"), of("100/s left"));
    assert_ne!(of("wfrun-1"), of("wfrun-2"));
    assert_ne!(of("attempt 1"), of("attempt 2"));
    assert_ne!(of("completed"), of("failed"));
}
