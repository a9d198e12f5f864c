//! The program's name and variables: lists of zero-terminated texts.

use super::answer::{Errno, Refused};
use super::memory::Memory;
use crate::span::Span;

/// Returns the number of texts, and the bytes that they need.
pub(super) fn sizes(
    texts: &[String],
    memory: &mut Memory<'_>,
    count: u32,
    bytes: u32,
) -> Result<(), Refused> {
    memory.store_length(count, texts.len())?;
    memory.store_length(bytes, texts.iter().map(|text| text.len() + 1).sum())?;
    Ok(())
}

/// Writes the texts one after the other, and a pointer to each into a list.
pub(super) fn place(
    texts: &[String],
    memory: &mut Memory<'_>,
    mut pointers: u32,
    mut bytes: u32,
) -> Result<(), Refused> {
    for text in texts {
        let text = [text.as_bytes(), &[0]].concat();
        let length = u32::try_from(text.len()).map_err(|_| Errno::Invalid)?;
        memory
            .write(Span::new(bytes, length))?
            .copy_from_slice(&text);
        memory.store(pointers, bytes.to_le_bytes())?;
        pointers = pointers.checked_add(4).ok_or(Errno::BadPointer)?;
        bytes = bytes.checked_add(length).ok_or(Errno::BadPointer)?;
    }
    Ok(())
}
