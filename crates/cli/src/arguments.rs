//! The command line as a whole.

use crate::code::Code;
use crate::commands::Command;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::output::Format;
use clap::{CommandFactory, Parser};
use std::ffi::OsString;
use std::process::ExitCode;

const FIRST_STEPS: &str = "\
First steps:
  flo dev                                        run a one-node cluster on this machine
  flo workflow create -f order.yaml              store a workflow
  flo worker exec charge -- ./charge.sh          run a program as the action `charge`
  flo workflow start order '{\"id\":7}' --wait     start a run and print its output

Exit codes: 0 ok, 1 not found, 2 usage or bad input, 3 refused by the server,
4 try again later, 5 cannot connect, 6 local failure.";

/// Durable workflows on a replicated cluster
///
/// One binary is the server (`flo server`, `flo dev`), the client and the worker. The --help of
/// each command has an example.
#[derive(Debug, Parser)]
#[command(name = "flo", version, after_help = FIRST_STEPS)]
pub(crate) struct Arguments {
    /// The flags that all commands accept.
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Arguments {
    /// The given namespace, if the command works in one.
    pub(crate) fn namespace(&self) -> Option<String> {
        match self.command {
            Command::Cluster(_) => None,
            _ => self.globals.namespace.clone(),
        }
    }

    /// Reads the command line of this process.
    ///
    /// # Errors
    /// Clap's error. Its usage line shows only the flags that were given: flags set by environment
    /// variables would look required.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::try_parse().map_err(|error| {
            let without_variables = Self::command().mut_args(|argument| argument.env(None::<&str>));
            let again = without_variables.try_get_matches();
            again.err().unwrap_or(error)
        })
    }
}

/// Prints clap's message (help or a usage error) and returns its exit code.
pub(crate) fn refuse(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && wants_json(std::env::args_os()) {
        let text = error.render().to_string();
        let message = sentence(&text);
        return Failure::new(Code::Usage, message)
            .with_hint("see --help")
            .report(Format::Json);
    }
    // A closed stderr is ignored: nothing else can be reported.
    let _ = error.print();
    u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The error without the usage below it. Missing arguments are listed on separate lines.
fn sentence(text: &str) -> String {
    let lines = text.lines().map(str::trim);
    let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    lines.join(" ").trim_start_matches("error: ").to_owned()
}

/// Whether a command line that cannot be parsed requests JSON output.
fn wants_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let arguments: Vec<OsString> = arguments.collect();
    let is_flag = |argument: &OsString| argument == "-o" || argument == "--format";
    let is_both = |argument: &OsString| {
        ["-ojson", "-o=json", "--format=json"]
            .iter()
            .any(|both| argument == both)
    };
    arguments.iter().any(is_both)
        || arguments
            .windows(2)
            .any(|pair| is_flag(&pair[0]) && pair[1] == "json")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::words;
    use std::time::Duration;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_verb_has_a_sentence_and_an_example() {
        let mut open = vec![("flo".to_owned(), Arguments::command())];
        let mut verbs = 0;
        while let Some((path, command)) = open.pop() {
            assert!(command.get_about().is_some(), "`{path}` says what it does");
            let below: Vec<_> = command.get_subcommands().cloned().collect();
            if below.is_empty() {
                let help = command.get_after_help().map(ToString::to_string);
                let help = help.unwrap_or_default();
                assert!(help.contains(&path), "the help of `{path}` has an example");
                verbs += 1;
            }
            let child =
                |command: clap::Command| (format!("{path} {}", command.get_name()), command);
            open.extend(below.into_iter().map(child));
        }
        assert!(verbs > 25, "the walk reaches the verbs: {verbs}");
    }

    #[test]
    fn every_example_is_a_command_line_that_parses() {
        let mut open = vec![Arguments::command()];
        while let Some(command) = open.pop() {
            let help = command.get_after_help().map(ToString::to_string);
            let examples = help.as_deref().unwrap_or_default().lines();
            for example in examples.filter(|line| line.trim_start().starts_with("flo ")) {
                // Two spaces begin a remark.
                let call = example.trim().split("  ").next().unwrap_or_default();
                let words = words(call);
                let parsed = Arguments::try_parse_from(&words);
                assert!(
                    parsed.is_ok(),
                    "{example:?}: {}",
                    parsed.expect_err("checked")
                );
            }
            open.extend(command.get_subcommands().cloned());
        }
    }

    #[test]
    fn an_id_that_is_empty_is_refused() {
        for (verb, flag) in [
            ("workflow start order", "--idempotency-key"),
            ("workflow start order", "--run-id"),
            ("workflow signal wfrun-1 --type paid", "--id"),
            ("action invoke charge", "--idempotency-key"),
        ] {
            assert!(parse(&format!("flo {verb} {flag}=k1")).is_ok(), "{flag}");
            assert!(parse(&format!("flo {verb} {flag}=")).is_err(), "{flag}");
        }
    }

    #[test]
    fn global_flags_may_stand_before_and_after_the_verb() {
        for line in [
            "flo -o json -n shop --endpoint a:1,b:2 --timeout 500ms workflow list",
            "flo workflow list --timeout 500ms --endpoint a:1,b:2 -n shop --format json",
        ] {
            let globals = parse(line).expect(line).globals;
            assert_eq!(globals.format, Format::Json);
            assert_eq!(globals.namespace.as_deref(), Some("shop"));
            assert_eq!(globals.endpoint, ["a:1", "b:2"]);
            assert_eq!(globals.timeout, Duration::from_millis(500));
        }
    }

    #[test]
    fn bad_usage_exits_with_2() {
        for line in [
            "flo",
            "flo workflow",
            "flo workflow start",
            "flo workflow list --limit 0",
            "flo workflow list --limit 1001",
            "flo workflow runs --status done",
            "flo action invoke a --wait --async",
            "flo worker exec",
            "flo worker exec a",
            "flo worker exec --action a",
            "flo worker exec --action a=b -- c",
            "flo worker exec --stream a",
            "flo worker exec a --stream b -- c",
            "flo worker exec a --group b -- c",
            "flo stream append a",
            "flo stream trim a",
            "flo stream trim a --keep 1 --before 0-0",
            "flo kv set a b --if-absent --if-version 1",
            "flo --timeout soon cluster status",
            "flo plan status a",
        ] {
            assert_eq!(parse(line).expect_err(line).exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn a_command_line_that_cannot_be_parsed_still_says_how_to_print() {
        let asks = |line: &str| wants_json(line.split_whitespace().map(OsString::from));
        assert!(asks("flo -o json workflow lost"));
        assert!(asks("flo workflow lost --format=json"));
        assert!(!asks("flo workflow start json"));
    }
}
