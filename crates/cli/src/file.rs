//! Files that a command names, and why one cannot be read or written.

use crate::code::Code;
use crate::failure::Failure;
use std::io::{self, ErrorKind};

/// The refusal of a file that cannot be read, in words instead of the system's.
pub(crate) fn unreadable(code: Code, name: &str, error: &io::Error) -> Failure {
    let (found, hint) = match error.kind() {
        ErrorKind::NotFound => ("there is none", "a path is looked for from this folder"),
        ErrorKind::IsADirectory => ("it is a folder", "name a file in it"),
        ErrorKind::NotADirectory => (
            "a part of its path is no folder",
            "a path is looked for from this folder",
        ),
        ErrorKind::PermissionDenied => ("it may not be read by you", "`ls -l` shows who may"),
        ErrorKind::InvalidData => ("it is not text in UTF-8", "`file NAME` tells what it is"),
        _ => {
            let message = format!("expected to read {name}, but {}", plain(error));
            return Failure::new(code, message);
        }
    };
    let message = format!("expected a file {name} to read, but {found}");
    Failure::new(code, message).with_hint(hint)
}

/// The failure of a file that cannot be written.
pub(crate) fn unwritable(name: &str, error: &io::Error) -> Failure {
    let message = format!("expected to write {name}, but {}", plain(error));
    Failure::new(Code::FileUnwritable, message)
        .with_hint("its folder must be there, and yours to write in")
}

/// The system's words for an error, without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Format;
    use expect_test::{Expect, expect};
    use std::fs;

    fn check(error: &io::Error, expected: &Expect) {
        let failure = unreadable(Code::FileUnreadable, "order.yaml", error);
        expected.assert_eq(&failure.render(Format::Text));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_refused_in_words_and_with_a_hint() {
        let missing = fs::read("no/such/file").expect_err("missing");
        check(
            &missing,
            &expect![[r#"
                error: expected a file order.yaml to read, but there is none
                hint: a path is looked for from this folder
            "#]],
        );
        let folder = fs::read(".").expect_err("a folder");
        check(
            &folder,
            &expect![[r#"
                error: expected a file order.yaml to read, but it is a folder
                hint: name a file in it
            "#]],
        );
        check(
            &io::Error::from_raw_os_error(5),
            &expect![[r#"
                error: expected to read order.yaml, but input/output error
            "#]],
        );
    }
}
