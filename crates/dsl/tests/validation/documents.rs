//! The definitions in the documents, and the page that lists the codes.

use expect_test::expect_file;
use flotilla_dsl::{Code, parse, render};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The pages of the manual and the README, in order of path.
fn documents() -> Vec<PathBuf> {
    let root = PathBuf::from(
        std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package's folder"),
    )
    .join("../..");
    let mut documents = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs/manual")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the manual can be read") {
            let path = entry.expect("the manual can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    documents
}

/// The fenced blocks of `language`, each with the number of its first line.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<(usize, String)> {
    let opening = format!("```{language}");
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if line.trim_end() == opening {
            let block: Vec<&'a str> = lines
                .by_ref()
                .map(|(_, line)| line)
                .take_while(|line| line.trim_end() != "```")
                .collect();
            blocks.push((number + 2, block.join("\n") + "\n"));
        }
    }
    blocks
}

fn place(path: &Path, line: usize) -> String {
    format!("{}:{line}", path.display())
}

#[test]
fn every_definition_in_the_documents_is_valid() {
    let mut definitions_count = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).expect("a document can be read");
        for (line, block) in blocks(&text, "yaml") {
            let parsed = parse(&block);
            assert!(
                !parsed.is_refused(),
                "the block at {} is refused:\n{}",
                place(&path, line),
                render(&parsed.findings, &block, "block.yaml")
            );
            definitions_count += 1;
        }
    }
    assert!(
        definitions_count > 20,
        "expected the manual's definitions, but found {definitions_count}"
    );
}

#[test]
fn the_page_of_validation_codes_lists_the_codes() {
    let mut page = String::from(
        "# Validation codes\n\n\
         `flo workflow validate` and `flo workflow create` report what they find under these codes. A definition\n\
         with only warnings is accepted.\n\n\
         | code | severity | what |\n|---|---|---|\n",
    );
    for code in Code::ALL {
        writeln!(
            page,
            "| `{code}` | {} | {} |",
            code.severity().as_str(),
            code.what()
        )
        .expect("a string takes any text");
    }
    expect_file!["../../../../docs/manual/reference/validation-codes.md"].assert_eq(&page);
}

#[test]
fn a_text_that_ends_within_a_line_is_refused_in_that_line() {
    let text = "kind: Workflow\nname: w\nstart:\n  run: a\n  transi";
    let findings = flotilla_dsl::parse(text).findings;
    let last = findings.iter().map(|finding| finding.span.line).max();
    assert_eq!(last, Some(5), "{findings:?}");
}

#[test]
fn a_key_is_reported_without_control_characters() {
    let text = r#"{"kind": "Workflow", "steps": {"a\u001b[31m": {"run": 5}, "b\n": {"retry": 1}}}"#;
    for finding in flotilla_dsl::parse(text).findings {
        let told = format!("{} {:?}", finding.message, finding.hint);
        assert!(!told.contains(char::is_control), "{told:?}");
    }
}
