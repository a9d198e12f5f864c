//! `flo completions`.

use crate::arguments::Arguments;
use crate::failure::Failure;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::{self, Write};

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  flo completions bash > /etc/bash_completion.d/flo")]
pub(crate) struct Completions {
    /// Shell to print the script for
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "flo", &mut script);
        io::stdout().write_all(&script)?;
        Ok(())
    }
}
