//! Numbers that comments and documents cite exist: rules, design rules, decision records.

use std::collections::BTreeSet;

use crate::prose::{self, Word};
use crate::tree::{Finding, Source, expect_lines, expect_none, sources};

/// The document of the rules: one heading `### W12 Title` each.
const RULES: &str = "docs/rules.md";

/// The document of the design rules: one heading `## 7. Title` each.
const DESIGN: &str = "docs/design.md";

const RECORDS: &str = "docs/adr/";

#[test]
fn every_rule_that_is_cited_has_its_entry() {
    let rules = rules(&document(RULES));
    assert!(rules.contains("W12"), "{RULES} has headings of rules");
    expect_none(&sources(&prose::ENDINGS), |source| {
        unknown_rules(source, &rules)
    });
}

#[test]
fn every_rule_is_cited_by_a_test() {
    let mut untested = rules(&document(RULES));
    for source in sources(&[".rs", ".txt"]) {
        if is_test(&source.path) {
            let words = source.text.split(|c: char| !c.is_alphanumeric());
            words.for_each(|word| {
                untested.remove(word);
            });
        }
    }
    assert_eq!(untested, BTreeSet::new(), "no test cites these rules");
}

#[test]
fn every_design_rule_that_is_cited_exists() {
    let rules = design_rules(&document(DESIGN));
    assert!(rules.contains("7"), "{DESIGN} has headings of rules");
    expect_none(&sources(&prose::ENDINGS), |source| {
        unknown_design_rules(source, &rules)
    });
}

#[test]
fn every_decision_record_that_is_cited_exists() {
    let records = sources(&[".md"]).into_iter();
    let records: BTreeSet<String> = records.filter_map(|source| record(&source.path)).collect();
    expect_none(&sources(&prose::ENDINGS), |source| {
        unknown_records(source, &records)
    });
}

fn document(path: &str) -> Source {
    let mut documents = sources(&[".md"]).into_iter();
    documents
        .find(|source| source.path == path)
        .expect("the document is in the repository")
}

/// Whether a file has tests or is a script of tests.
fn is_test(path: &str) -> bool {
    let folders = ["sim/", "jepsen/", "tests/"];
    folders.iter().any(|folder| path.starts_with(folder))
        || path.contains("/tests/")
        || path.contains("/testdata/")
}

/// The numbers of rules in headings such as `### W12 Retry`.
fn rules(document: &Source) -> BTreeSet<String> {
    let headings = document.lines();
    let headings = headings.filter_map(|(_, line)| line.strip_prefix("### ")?.split_once(' '));
    let numbers = headings.map(|(number, _)| number);
    numbers
        .filter(|number| is_rule_number(number))
        .map(str::to_owned)
        .collect()
}

/// The numbers of design rules in headings such as `## 7. Title`.
fn design_rules(document: &Source) -> BTreeSet<String> {
    let headings = document.lines();
    let headings = headings.filter_map(|(_, line)| line.strip_prefix("## ")?.split_once(". "));
    let numbers = headings.map(|(number, _)| number);
    numbers
        .filter(|number| is_number(number))
        .map(str::to_owned)
        .collect()
}

/// The number of the decision record at a path.
fn record(path: &str) -> Option<String> {
    let (number, _) = path.strip_prefix(RECORDS)?.split_once('-')?;
    Some(number.to_owned())
}

fn unknown_rules(source: &Source, rules: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for word in prose::words(source) {
        let parts = word.text.split(|c: char| !c.is_alphanumeric());
        for number in parts.filter(|part| is_rule_number(part) && !rules.contains(*part)) {
            let message = format!("expected rule {number} in {RULES}, but it has no such heading");
            findings.push(source.finding(word.line, message));
        }
    }
    findings
}

fn unknown_design_rules(source: &Source, rules: &BTreeSet<String>) -> Vec<Finding> {
    let words = prose::words(source);
    let mut findings = Vec::new();
    for (position, word) in words.iter().enumerate() {
        let name = word.bare().to_lowercase();
        if name != "rule" && name != "rules" {
            continue;
        }
        let before = position.checked_sub(1).map(|before| words[before].bare());
        let is_design = before.is_some_and(|before| before.eq_ignore_ascii_case("design"));
        for number in numbers(&words[position + 1..]) {
            let what = number.bare();
            if !is_design {
                let message = format!("expected `design rule {what}`, but `design` is missing");
                findings.push(source.finding(number.line, message));
            } else if !rules.contains(what) {
                let message = format!("expected design rule {what} in {DESIGN}");
                findings.push(source.finding(number.line, message));
            }
        }
    }
    findings
}

fn unknown_records(source: &Source, records: &BTreeSet<String>) -> Vec<Finding> {
    let words = prose::words(source);
    let mut findings = Vec::new();
    for (position, word) in words.iter().enumerate() {
        if !matches!(word.bare(), "ADR" | "ADRs") {
            continue;
        }
        let numbers = numbers(&words[position + 1..]);
        for number in numbers.filter(|number| !records.contains(number.bare())) {
            let message = format!("there is no decision record {}", number.bare());
            findings.push(source.finding(number.line, message));
        }
    }
    findings
}

/// The numbers at the start of words: `4`, `4 and 13`, `1, 2, 10`.
fn numbers(words: &[Word]) -> impl Iterator<Item = &Word> {
    let mut rest = words.iter();
    let mut is_over = false;
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let word = rest.next().filter(|word| is_number(word.bare()))?;
        let is_joined = rest.clone().next().is_some_and(|next| next.text == "and");
        if is_joined && word.text == word.bare() {
            rest.next();
        } else {
            let listed = word.text.strip_suffix(',');
            is_over = listed.is_none_or(|listed| !is_number(listed));
        }
        Some(word)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the text is a rule number, such as `W12`, `A4` or `W21a`.
pub(crate) fn is_rule_number(text: &str) -> bool {
    let Some(number) = text.strip_prefix(['W', 'A']) else {
        return false;
    };
    is_number(
        number
            .strip_suffix(|last: char| last.is_ascii_lowercase())
            .unwrap_or(number),
    )
}

#[test]
fn planted_unknown_rules_are_found() {
    let list =
        "## Steps\n### W12 Retry\n### W21a Detail\n### Note\ntext ### W99 none\n### A4 Lease\n";
    let rules = rules(&Source::planted(RULES, list));
    assert_eq!(rules, ["A4", "W12", "W21a"].map(str::to_owned).into());
    let text =
        "// (W12, A4), W12–W21a\n// W13.\nlet a = W14; // as W21a\n// W12a/A5\n// W3C, A-1, a1\n";
    let planted = Source::planted("a.rs", text);
    expect_lines(|source| unknown_rules(source, &rules), &planted, &[2, 4, 4]);
    let planted = Source::planted("a.txt", "# W12: retry\n# W13: other\nstart W14\n");
    expect_lines(|source| unknown_rules(source, &rules), &planted, &[2]);
}

#[test]
fn planted_unknown_design_rules_are_found() {
    let list = "## 1. Pure\n## 2. Many\n## Raft\n### 3. No rule\n";
    let rules = design_rules(&Source::planted(DESIGN, list));
    assert_eq!(rules, ["1", "2"].map(str::to_owned).into());
    let unknown = |source: &Source| unknown_design_rules(source, &rules);
    // `~` stands for the sign of a comment, since this file obeys its own rule.
    let text = "\
~ (design rule 1), 3 of them; Design rules 1, 2 and 3
~ over the end of the line (design
~ rule 4); design rules; a rule
~ (rule 2)
~ design rule 1 and 20 more: both are cited
"
    .replace('~', "//");
    let planted = Source::planted("a.rs", &text);
    expect_lines(unknown, &planted, &[1, 3, 4, 5]);
}

#[test]
fn planted_unknown_decision_records_are_found() {
    assert_eq!(record("docs/adr/0001-a.md"), Some("0001".to_owned()));
    assert_eq!(record("docs/rules.md"), None);
    let records = ["0001", "0002"].map(str::to_owned).into();
    let unknown = |source: &Source| unknown_records(source, &records);
    let text = "ADR 0001, ADRs 0001 and 0002 (ADR\n0003), an ADR, ADR 1\n";
    expect_lines(unknown, &Source::planted("a.md", text), &[2, 2]);
}
