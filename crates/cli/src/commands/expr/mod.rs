//! `flo expr`.

mod eval;

use crate::failure::Failure;
use crate::session::Session;
use clap::Subcommand;

/// Try expressions
#[derive(Debug, Subcommand)]
pub(crate) enum ExprCommand {
    Eval(eval::Eval),
}

impl ExprCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        match self {
            Self::Eval(eval) => eval.run(session),
        }
    }
}
