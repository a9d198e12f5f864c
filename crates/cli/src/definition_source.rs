//! The text of a definition, from a file or from stdin (`-`).

use crate::code::Code;
use crate::failure::Failure;
use crate::file;
use std::fs;
use std::io;

/// A definition's text and its source.
#[derive(Debug)]
pub(crate) struct DefinitionSource {
    /// The file name as it was given, or `stdin`.
    pub(crate) file_name: String,
    /// The text of the definition.
    pub(crate) text: String,
}

impl DefinitionSource {
    /// Reads a file, or stdin for `-`.
    ///
    /// # Errors
    /// `file_unreadable` if it cannot be read or is not UTF-8.
    pub(crate) fn read(path: &str) -> Result<Self, Failure> {
        let is_stdin = path == "-";
        let file_name = if is_stdin { "stdin" } else { path }.to_owned();
        let text = if is_stdin {
            io::read_to_string(io::stdin())
        } else {
            fs::read_to_string(path)
        };
        let text =
            text.map_err(|error| file::unreadable(Code::FileUnreadable, &file_name, &error))?;
        Ok(Self { file_name, text })
    }
}
