//! Bounded capture of a program's output.

use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The maximum size of stdout: that of a payload (design rule 13).
pub(super) const OUTPUT_BYTES_MAX: usize = 1 << 20;

/// How much of stderr's end is kept.
const TAIL_BYTES_MAX: usize = 4 << 10;

/// Reads everything; `None` if it exceeds the maximum.
pub(super) async fn output(source: impl AsyncRead + Unpin) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let bound = u64::try_from(OUTPUT_BYTES_MAX).unwrap_or(u64::MAX);
    source.take(bound + 1).read_to_end(&mut bytes).await?;
    Ok(Some(bytes).filter(|bytes| bytes.len() <= OUTPUT_BYTES_MAX))
}

/// Copies everything to the sink and returns the last line that is not blank.
pub(super) async fn last_line(
    mut source: impl AsyncRead + Unpin,
    mut sink: impl AsyncWrite + Unpin,
) -> io::Result<Option<String>> {
    let mut tail = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let read = source.read(&mut chunk).await?;
        if read == 0 {
            break;
        }
        // The worker's own stderr may be closed; the program continues.
        let _ = sink.write_all(&chunk[..read]).await;
        tail.extend_from_slice(&chunk[..read]);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES_MAX));
    }
    let _ = sink.flush().await;
    let text = String::from_utf8_lossy(&tail);
    let line = text
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    Ok(line.map(ToOwned::to_owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn output_up_to_the_bound_is_kept_and_larger_output_is_discarded() {
        let full = vec![b'a'; OUTPUT_BYTES_MAX];
        let kept = output(&full[..]).await.expect("memory");
        assert_eq!(kept.map(|bytes| bytes.len()), Some(OUTPUT_BYTES_MAX));
        let more = vec![b'a'; OUTPUT_BYTES_MAX + 1];
        assert_eq!(output(&more[..]).await.expect("memory"), None);
    }

    #[tokio::test]
    async fn the_last_line_is_found_and_everything_is_passed_on() {
        let mut passed = Vec::new();
        let line = last_line(&b"first\nlast \n\n"[..], &mut passed).await;
        assert_eq!(line.expect("memory").as_deref(), Some("last"));
        assert_eq!(passed, b"first\nlast \n\n");
        assert_eq!(last_line(&b""[..], Vec::new()).await.expect("memory"), None);
    }

    #[tokio::test]
    async fn a_long_line_is_cut_at_its_start() {
        let long = [vec![b'x'; 3 * TAIL_BYTES_MAX], b"end".to_vec()].concat();
        let line = last_line(&long[..], Vec::new()).await.expect("memory");
        let line = line.expect("a line");
        assert!(line.len() <= TAIL_BYTES_MAX && line.ends_with("end"));
    }
}
