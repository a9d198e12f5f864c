//! Files named by a command, and the errors of reading and writing them.

use crate::code::Code;
use crate::failure::Failure;
use std::io::{self, ErrorKind};

/// The failure for a file that cannot be read, with a plainer text than the system's.
pub(crate) fn unreadable(code: Code, name: &str, error: &io::Error) -> Failure {
    let (found, hint) = match error.kind() {
        ErrorKind::NotFound => (
            "it does not exist",
            "relative paths start at the current directory",
        ),
        ErrorKind::IsADirectory => ("it is a directory", "name a file in that directory"),
        ErrorKind::NotADirectory => (
            "part of its path is not a directory",
            "relative paths start at the current directory",
        ),
        ErrorKind::PermissionDenied => (
            "you do not have permission to read it",
            "`ls -l` shows its permissions",
        ),
        ErrorKind::InvalidData => ("it is not UTF-8 text", "`file NAME` shows its type"),
        _ => {
            let message = format!("expected to read {name}, but {}", plain(error));
            return Failure::new(code, message);
        }
    };
    let message = format!("expected a file {name} to read, but {found}");
    Failure::new(code, message).with_hint(hint)
}

/// The failure for a file that cannot be written.
pub(crate) fn unwritable(name: &str, error: &io::Error) -> Failure {
    let message = format!("expected to write {name}, but {}", plain(error));
    Failure::new(Code::FileUnwritable, message)
        .with_hint("its directory must exist and be writable")
}

/// The system's error text without the error number.
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
                error: expected a file order.yaml to read, but it does not exist
                hint: relative paths start at the current directory
            "#]],
        );
        let folder = fs::read(".").expect_err("a folder");
        check(
            &folder,
            &expect![[r#"
                error: expected a file order.yaml to read, but it is a directory
                hint: name a file in that directory
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
