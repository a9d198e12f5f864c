//! What a WASI command writes to stderr: its log, line by line.

use crate::limits::{LAST_LINE_BYTES_MAX, LOG_LINE_BYTES_MAX};
use crate::log::{LogLevel, Logs};

/// The line being written, and the previous one.
#[derive(Default)]
pub(super) struct Stderr {
    line: Vec<u8>,
    last_line: Option<String>,
}

impl Stderr {
    /// Logs each complete line. Bytes of a line beyond the limit of a log line are dropped.
    pub(super) fn write(&mut self, bytes: &[u8], logs: &mut Logs) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, is_complete) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                Some(_) | None => (piece, false),
            };
            let room = LOG_LINE_BYTES_MAX - self.line.len();
            self.line.extend_from_slice(&text[..text.len().min(room)]);
            if is_complete {
                self.end_line(logs);
            }
        }
    }

    /// Logs what was written since the last line break, and returns the last line that is not
    /// blank.
    pub(super) fn end(mut self, logs: &mut Logs) -> Option<String> {
        self.end_line(logs);
        self.last_line
    }

    fn end_line(&mut self, logs: &mut Logs) {
        let line = self.line.trim_ascii_end();
        if !line.is_empty() {
            logs.push(LogLevel::Info, line);
            let text = String::from_utf8_lossy(line);
            let text = text.trim();
            let end = text.floor_char_boundary(LAST_LINE_BYTES_MAX);
            self.last_line = Some(text[..end].to_owned());
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pieces: &[&[u8]]) -> (Vec<String>, Option<String>) {
        let (mut stderr, mut logs) = (Stderr::default(), Logs::default());
        for piece in pieces {
            stderr.write(piece, &mut logs);
        }
        let last_line = stderr.end(&mut logs);
        let lines = logs.lines().iter().map(|line| line.text.clone());
        (lines.collect(), last_line)
    }

    #[test]
    fn lines_are_found_however_they_are_written() {
        let (lines, last_line) = written(&[b"fi", b"rst\n", b"\r\n  sec", b"", b"ond\r\nlast "]);
        assert_eq!(lines, ["first", "  second", "last"]);
        assert_eq!(last_line.as_deref(), Some("last"));
    }

    #[test]
    fn blank_lines_do_not_count_as_a_last_line_and_empty_text_has_no_last_line() {
        let (lines, last_line) = written(&[b"only\n\n  \n"]);
        assert_eq!((lines.len(), last_line.as_deref()), (1, Some("only")));
        assert_eq!(written(&[b"\n"]), (vec![], None));
        assert_eq!(written(&[]), (vec![], None));
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let long = "é".repeat(LOG_LINE_BYTES_MAX);
        let (lines, last_line) = written(&[b"x", long.as_bytes(), b"never seen"]);
        let last_line = last_line.unwrap();
        assert_eq!(last_line.len(), LAST_LINE_BYTES_MAX - 1);
        assert!(last_line.ends_with('é') && lines[0].starts_with(&last_line));
    }
}
