//! The commands of xtask, and how the first argument selects one.

use std::fmt;

use anyhow::Result;

/// One command of `cargo xtask`.
pub(crate) struct Subcommand {
    /// The argument that selects it: `cargo xtask NAME`.
    pub(crate) name: &'static str,
    /// One line for the list of commands.
    pub(crate) summary: &'static str,
    /// Its help: usage, what it does, an example.
    pub(crate) help: &'static str,
    /// Runs the command with the arguments after the name.
    pub(crate) run: fn(&[String]) -> Result<()>,
}

/// A usage error; nothing was done.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Runs the command that the first argument names; without one, prints the help.
///
/// # Errors
/// [`UsageError`] for an unknown name; otherwise what the command returns.
pub(crate) fn dispatch(subcommands: &[Subcommand], arguments: &[String]) -> Result<()> {
    let Some((name, rest)) = arguments.split_first() else {
        print!("{}", overview(subcommands));
        return Ok(());
    };
    if is_help(name) {
        print!("{}", overview(subcommands));
        return Ok(());
    }
    let Some(subcommand) = subcommands.iter().find(|known| known.name == name) else {
        let message = format!("expected a command, but got `{name}`");
        return Err(UsageError(format!("{message}\n\n{}", overview(subcommands))).into());
    };
    if rest.iter().any(|argument| is_help(argument)) {
        print!("{}", subcommand.help);
        return Ok(());
    }
    (subcommand.run)(rest)
}

/// Refuses arguments, for a command that takes none.
///
/// # Errors
/// [`UsageError`] that names the first argument.
pub(crate) fn expect_no_arguments(arguments: &[String]) -> Result<()> {
    match arguments.first() {
        None => Ok(()),
        Some(first) => Err(UsageError(format!("expected no argument, but got `{first}`")).into()),
    }
}

fn is_help(argument: &str) -> bool {
    matches!(argument, "help" | "--help" | "-h")
}

fn overview(subcommands: &[Subcommand]) -> String {
    let mut text =
        String::from("The project's own commands.\n\nUsage: cargo xtask COMMAND\n\nCommands:\n");
    let widths = subcommands.iter().map(|subcommand| subcommand.name.len());
    let width = widths.max().unwrap_or(0);
    for Subcommand { name, summary, .. } in subcommands {
        text.push_str(&format!("  {name:<width$}  {summary}\n"));
    }
    text.push_str("\nExamples:\n");
    for subcommand in subcommands {
        text.push_str(&format!("  cargo xtask {}\n", subcommand.name));
    }
    text.push_str("\n`cargo xtask COMMAND --help` describes a command.\n");
    text
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    const PROBE: Subcommand = Subcommand {
        name: "probe",
        summary: "Fails with its arguments",
        help: "Usage: cargo xtask probe\n",
        run: |arguments| bail!("ran with {}", arguments.join(" ")),
    };

    fn dispatch_words(words: &[&str]) -> Result<()> {
        let arguments: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        dispatch(&[PROBE], &arguments)
    }

    #[test]
    fn a_command_gets_the_arguments_after_its_name() {
        let error = dispatch_words(&["probe", "a", "b"]).unwrap_err();
        assert_eq!(error.to_string(), "ran with a b");
    }

    #[test]
    fn an_unknown_command_is_refused_with_the_help() {
        let error = dispatch_words(&["prove"]).unwrap_err();
        assert!(error.is::<UsageError>());
        let text = error.to_string();
        assert!(text.contains("got `prove`"), "{text}");
        assert!(text.contains("cargo xtask probe"), "{text}");
    }

    #[test]
    fn summaries_stand_below_each_other() {
        let long = Subcommand {
            name: "probe-at-length",
            ..PROBE
        };
        let text = overview(&[PROBE, long]);
        let expected = "  probe            Fails with its arguments\n  probe-at-length  Fails";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn help_never_runs_the_command() {
        for words in [&[][..], &["help"], &["--help"], &["probe", "--help"]] {
            dispatch_words(words).unwrap();
        }
    }

    #[test]
    fn a_command_without_arguments_names_the_one_it_got() {
        let error = expect_no_arguments(&["--fast".to_owned()]).unwrap_err();
        assert_eq!(error.to_string(), "expected no argument, but got `--fast`");
    }
}
