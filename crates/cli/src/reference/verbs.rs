//! The page of commands, generated from clap's definitions.

use crate::arguments::Arguments;
use clap::{Arg, ArgAction, Command, CommandFactory};
use expect_test::expect_file;
use std::fmt::Write;

#[test]
fn the_page_of_verbs_lists_the_verbs() {
    let mut root = Arguments::command();
    root.build();
    let mut page = String::from(
        "# Command line\n\n\
         This page is generated from the program: `flo COMMAND --help` prints the same.\n",
    );
    push_globals(&mut page, &root);
    let mut open = vec![(root.get_name().to_owned(), &root)];
    while let Some((path, command)) = open.pop() {
        let below: Vec<&Command> = command
            .get_subcommands()
            .filter(|command| command.get_name() != "help")
            .collect();
        if below.is_empty() {
            push_verb(&mut page, &path, command);
        } else if path != "flo" {
            writeln!(page, "\n## {path}\n\n{}", about(command)).expect("a string takes any text");
        }
        let child = |command: &&'_ Command| format!("{path} {}", command.get_name());
        open.extend(below.iter().rev().map(|command| (child(command), *command)));
    }
    expect_file!["../../../../docs/manual/reference/cli.md"].assert_eq(&page);
}

/// The global flags, listed once.
fn push_globals(page: &mut String, root: &Command) {
    page.push_str(
        "\n## Global options\n\nAll commands accept these, before or after the command's name.\n",
    );
    push_table(page, &arguments(root, true));
    page.push_str("\nFlags override environment variables.\n");
}

fn push_verb(page: &mut String, path: &str, command: &Command) {
    let is_top = path.split(' ').count() == 2;
    let level = if is_top { "##" } else { "###" };
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let usage: Vec<&str> = usage.lines().map(str::trim).collect();
    write!(
        page,
        "\n{level} {path}\n\n{}\n\n```text\n{}\n```\n",
        about(command),
        usage.join("\n")
    )
    .expect("a string takes any text");
    push_table(page, &arguments(command, false));
    if let Some(examples) = command.get_after_help() {
        push_examples(page, &examples.to_string());
    }
}

/// The description of a command: the long text if there is one, as paragraphs.
fn about(command: &Command) -> String {
    let about = command.get_long_about().or_else(|| command.get_about());
    escape(&about.map(ToString::to_string).unwrap_or_default())
}

fn arguments(command: &Command, are_global: bool) -> Vec<&Arg> {
    command
        .get_arguments()
        .filter(|argument| argument.is_global_set() == are_global && !argument.is_hide_set())
        .filter(|argument| !is_built_in(argument))
        .collect()
}

/// Whether clap itself carries the argument out, as it does `--help`.
fn is_built_in(argument: &Arg) -> bool {
    use ArgAction::{Help, HelpLong, HelpShort, Version};
    matches!(argument.get_action(), Help | HelpLong | HelpShort | Version)
}

fn push_table(page: &mut String, arguments: &[&Arg]) {
    if arguments.is_empty() {
        return;
    }
    page.push_str("\n| argument | default | meaning |\n|---|---|---|\n");
    for argument in arguments {
        writeln!(
            page,
            "| {} | {} | {} |",
            name(argument),
            default(argument),
            meaning(argument)
        )
        .expect("a string takes any text");
    }
}

fn name(argument: &Arg) -> String {
    let values = argument.get_value_names().unwrap_or_default();
    let value = values
        .iter()
        .map(|name| name.to_string())
        .collect::<Vec<_>>()
        .join(" ");
    let takes_value = matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let flags: Vec<String> = short.into_iter().chain(long).collect();
    let text = match (flags.join(", "), takes_value) {
        (flags, _) if flags.is_empty() => value,
        (flags, true) if argument.is_require_equals_set() => format!("{flags}[={value}]"),
        (flags, true) => format!("{flags} {value}"),
        (flags, false) => flags,
    };
    code(&text)
}

fn default(argument: &Arg) -> String {
    if argument.is_hide_default_value_set() || !argument.get_action().takes_values() {
        return String::new();
    }
    let values = argument.get_default_values().iter();
    let values: Vec<String> = values.map(|value| code(&value.to_string_lossy())).collect();
    values.join(", ")
}

fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let mut meaning = escape(&help.split_whitespace().collect::<Vec<_>>().join(" "));
    let possible = argument.get_possible_values();
    if argument.get_action().takes_values() && !possible.is_empty() {
        let possible: Vec<String> = possible
            .iter()
            .map(|value| code(value.get_name()))
            .collect();
        write!(meaning, ". One of {}", possible.join(", ")).expect("a string takes any text");
    }
    if let Some(variable) = argument.get_env() {
        write!(
            meaning,
            ". Environment: {}",
            code(&variable.to_string_lossy())
        )
        .expect("a string takes any text");
    }
    meaning
}

fn push_examples(page: &mut String, help: &str) {
    for paragraph in help.split("\n\n") {
        let lines: Vec<&str> = paragraph.lines().collect();
        let is_code = lines.len() > 1 && lines[1..].iter().all(|line| line.starts_with("  "));
        if is_code {
            let block: Vec<String> = lines[1..].iter().map(|line| example(&line[2..])).collect();
            let is_shell = block.iter().any(|line| line.starts_with("flo "));
            let language = if is_shell { "sh" } else { "text" };
            let block = block.join("\n");
            write!(page, "\n{}\n\n```{language}\n{block}\n```\n", lines[0])
        } else {
            write!(page, "\n{}\n", escape(paragraph))
        }
        .expect("a string takes any text");
    }
}

/// A line of an example; two spaces separate a remark.
fn example(line: &str) -> String {
    match line.split_once("  ").filter(|_| line.starts_with("flo ")) {
        Some((call, remark)) => format!("{call}  # {}", remark.trim_start()),
        None => line.to_owned(),
    }
}

/// A code span in a table cell.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    format!("`{}`", text.replace('|', "\\|"))
}

/// Escapes `<`, `*` and `|`, because clap's texts are not Markdown.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    let mut is_code = false;
    for character in text.chars() {
        is_code ^= character == '`';
        if !is_code && matches!(character, '<' | '*' | '|' | '[') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}
