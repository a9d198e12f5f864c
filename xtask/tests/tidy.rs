//! The rules of the project that neither the compiler nor clippy can check, as tests.
//!
//! Each rule is a pure function from a file's text to findings, one test that runs it over the
//! whole tree, and one that shows it a violation, so that a rule that finds nothing is noticed.

#[path = "tidy/boundaries.rs"]
mod boundaries;
#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/citations.rs"]
mod citations;
#[path = "tidy/conformance.rs"]
mod conformance;
#[path = "tidy/doc_comments.rs"]
mod doc_comments;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/glossary.rs"]
mod glossary;
#[path = "tidy/links.rs"]
mod links;
#[path = "tidy/manifests.rs"]
mod manifests;
#[path = "tidy/parameters.rs"]
mod parameters;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "../src/project/root.rs"]
mod project;
#[path = "tidy/prose.rs"]
mod prose;
#[path = "tidy/records.rs"]
mod records;
#[path = "tidy/rust_code.rs"]
mod rust_code;
#[path = "tidy/rust_text.rs"]
mod rust_text;
#[path = "tidy/tree.rs"]
mod tree;
#[path = "tidy/unused.rs"]
mod unused;
#[path = "tidy/whitespace.rs"]
mod whitespace;
