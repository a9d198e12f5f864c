//! Where a value on the command line comes from: the text itself, `@FILE`, or `-` for stdin. Text that begins with `@`, or
//! is `-`, can come from stdin.

use crate::code::Code;
use crate::failure::Failure;
use crate::file;
use bytes::Bytes;
use std::fs;
use std::io;

/// Reads the value.
///
/// # Errors
/// `input_unreadable` for a file, or stdin, that cannot be read or is not UTF-8.
pub(crate) fn read(argument: &str) -> Result<Bytes, Failure> {
    // Commands print values as text.
    let text = match argument.strip_prefix('@') {
        Some(path) => fs::read_to_string(path),
        None if argument == "-" => io::read_to_string(io::stdin()),
        None => Ok(argument.to_owned()),
    };
    text.map(Bytes::from)
        .map_err(|error| file::unreadable(Code::InputUnreadable, name(argument), &error))
}

/// Checks that at most one value comes from stdin, which can be read once.
///
/// # Errors
/// `usage` otherwise.
pub(crate) fn check_stdin(arguments: &[String]) -> Result<(), Failure> {
    let count = arguments.iter().filter(|argument| *argument == "-").count();
    if count <= 1 {
        return Ok(());
    }
    let message = format!("expected one value from stdin, but {count} of them are -");
    Err(Failure::new(Code::Usage, message))
}

/// What messages call the source.
pub(crate) fn name(argument: &str) -> &str {
    if argument == "-" {
        return "stdin";
    }
    argument.strip_prefix('@').unwrap_or("the argument")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_file_is_read_and_a_missing_one_is_named() {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(b"[1]").expect("room for three bytes");
        let argument = format!("@{}", file.path().display());
        assert_eq!(read(&argument), Ok(Bytes::from_static(b"[1]")));
        let failure = read("@no/such/file").expect_err("missing");
        assert_eq!(failure.code(), "input_unreadable");
        file.write_all(b"\xff").expect("room for a byte");
        let failure = read(&argument).expect_err("not UTF-8");
        assert!(failure.message().contains("UTF-8"), "{failure:?}");
    }

    #[test]
    fn other_text_is_the_value() {
        assert_eq!(read("a@b"), Ok(Bytes::from_static(b"a@b")));
        assert_eq!(name("a@b"), "the argument");
        assert_eq!((name("-"), name("@a/b")), ("stdin", "a/b"));
    }

    #[test]
    fn stdin_gives_one_value() {
        let check = |arguments: [&str; 2]| check_stdin(&arguments.map(str::to_owned));
        assert_eq!(check(["-", "a"]), Ok(()));
        assert_eq!(check(["-", "-"]).expect_err("twice").code(), "usage");
    }
}
