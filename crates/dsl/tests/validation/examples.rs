//! The files of `examples/workflows`: the manual's workflows.

use flotilla_dsl::{parse, render};
use std::{fs, path::PathBuf};

/// Every example's file name and text, in order of name.
fn examples() -> Vec<(String, String)> {
    let folder = PathBuf::from(
        std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo names the package's folder"),
    )
    .join("../../examples/workflows");
    let mut examples: Vec<(String, String)> = fs::read_dir(folder)
        .expect("the folder of examples exists")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .map(|path| {
            let name = path
                .file_name()
                .expect("it has a name")
                .to_string_lossy()
                .into_owned();
            (name, fs::read_to_string(&path).expect("it is text"))
        })
        .collect();
    examples.sort();
    examples
}

#[test]
fn every_example_is_a_definition_named_like_its_file() {
    let examples = examples();
    assert!(examples.len() >= 9);
    for (file, text) in examples {
        let parsed = parse(&text);
        let findings = render(&parsed.findings, &text, &file);
        let definition = parsed.definition.unwrap_or_else(|| panic!("{findings}"));
        assert_eq!(format!("{}.yaml", definition.name), file);
    }
}

#[test]
fn an_example_means_the_same_written_as_json() {
    for (file, text) in examples() {
        let value: serde_yaml::Value =
            serde_yaml::from_str(&text).expect("another decoder reads it");
        let json = serde_json::to_string_pretty(&value).expect("it is JSON");
        assert_eq!(parse(&json).definition, parse(&text).definition, "{file}");
    }
}

#[test]
fn no_mutation_of_an_example_breaks_the_parser() {
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut draw = move |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % u64::try_from(bound.max(1)).expect("it fits")).expect("it fits")
    };
    let pieces = [
        "{", "}", "[", "]", "*a", "&a ", ": ", "- ", "\n", "  ", "\t", "'", "\"", "|\n", "#",
        "!!str ", "---\n", "? ", "é", "\\", "~", "-1", "1.5", "null", "$.", "flo.",
    ];
    let mut refused_count = 0;
    for (file, text) in examples() {
        for _ in 0..200 {
            let mut characters: Vec<char> = text.chars().collect();
            for _ in 0..=draw(3) {
                let from = draw(characters.len());
                let to = (from + draw(12)).min(characters.len());
                match draw(3) {
                    0 => drop(characters.drain(from..to)),
                    1 => drop(characters.splice(from..from, pieces[draw(pieces.len())].chars())),
                    _ => {
                        let copy: Vec<char> = characters[from..to].to_vec();
                        let at = draw(characters.len());
                        drop(characters.splice(at..at, copy));
                    }
                }
            }
            let mutant: String = characters.into_iter().collect();
            let parsed = parse(&mutant);
            refused_count += usize::from(parsed.is_refused());
            assert_eq!(
                parsed.is_refused(),
                parsed
                    .findings
                    .iter()
                    .any(|f| f.code.severity().as_str() == "error")
            );
            let shown = render(&parsed.findings, &mutant, &file);
            assert_eq!(shown.is_empty(), parsed.findings.is_empty());
        }
    }
    assert!(
        refused_count > 500,
        "the mutations change something: {refused_count}"
    );
}
