//! Scripts: input to the engine, `----`, and the complete output.
//!
//! A paragraph with a `----` line is one entry of the log: each line above it is a command (indented lines continue
//! it), a setting (`now`, `seed`, `offer` …) or a question (`show`, `timers` …). A paragraph without one is a comment.
//! After every entry, the tables must satisfy the invariants, and an engine without caches must produce the same
//! result.

mod access;
mod command;
mod condition;
mod damage;
mod dead_letter;
mod definition;
mod event;
mod group;
mod join;
mod kinds;
mod kv;
mod line;
mod pattern;
mod plan;
mod plan_question;
mod query;
mod question;
mod quota;
mod report;
mod schedule;
mod show;
mod stream;
mod trace;
mod trigger;
mod world;

pub(crate) use definition::define;
pub(crate) use pattern::lock;

use crate::testdata;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use world::World;

const SEPARATOR: &str = "----";
/// Begins the answer of a block that panics.
const PANIC: &str = "PANIC: ";

#[test]
fn every_script_shows_what_the_engine_does() {
    let failures: Vec<String> = testdata::files("")
        .iter()
        .filter_map(|path| testdata::compare(path, &run(&testdata::read(path))).err())
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // `UPDATE` writes them too, so that they are found where they happened.
    let panics = |path: &&PathBuf| testdata::read(path).contains(&format!("\n{PANIC}"));
    let files = testdata::files("");
    let panicked: Vec<_> = files.iter().filter(panics).collect();
    assert!(panicked.is_empty(), "a block panics in {panicked:?}");
}

/// The log that a script makes: its encoded entries, from index 1.
pub(crate) fn log(script: &str) -> Vec<Vec<u8>> {
    let mut world = World::new();
    play(&mut world, script);
    world.into_log()
}

/// The script with what the engine answers now.
fn run(script: &str) -> String {
    play(&mut World::new(), script)
}

fn play(world: &mut World, script: &str) -> String {
    let paragraphs = script.trim_end().split("\n\n").map(|paragraph| {
        let paragraph = paragraph.trim_matches('\n');
        match paragraph.split_once(SEPARATOR) {
            None => paragraph.to_owned(),
            Some((input, _)) => {
                let output = answer(world, input);
                format!("{input}{SEPARATOR}\n{output}")
                    .trim_end()
                    .to_owned()
            }
        }
    });
    paragraphs.collect::<Vec<_>>().join("\n\n") + "\n"
}

/// A test's own panic (a broken invariant, a misspelt command) is shown where it happened.
fn answer(world: &mut World, input: &str) -> String {
    catch_unwind(AssertUnwindSafe(|| world.entry(input))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        format!("{PANIC}{}", text.unwrap_or("without a message"))
    })
}
