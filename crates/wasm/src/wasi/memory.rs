//! The guest's memory in preview 1's layout: little-endian, with 32-bit pointers.

use super::answer::Errno;
use crate::limits::WASI_LIST_MAX;
use crate::span::Span;

/// The memory during one function call.
pub(super) struct Memory<'a>(&'a mut [u8]);

impl<'a> Memory<'a> {
    pub(super) fn new(bytes: &'a mut [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn read(&self, span: Span) -> Result<&[u8], Errno> {
        span.read(self.0).ok_or(Errno::BadPointer)
    }

    pub(super) fn write(&mut self, span: Span) -> Result<&mut [u8], Errno> {
        span.write(self.0).ok_or(Errno::BadPointer)
    }

    /// Reads a record of fixed length.
    pub(super) fn load<const LENGTH: usize>(&self, pointer: u32) -> Result<[u8; LENGTH], Errno> {
        let bytes = self.read(record::<LENGTH>(pointer)?)?;
        bytes.try_into().map_err(|_| Errno::BadPointer)
    }

    /// Writes a record of fixed length.
    pub(super) fn store<const LENGTH: usize>(
        &mut self,
        pointer: u32,
        bytes: [u8; LENGTH],
    ) -> Result<(), Errno> {
        self.write(record::<LENGTH>(pointer)?)?
            .copy_from_slice(&bytes);
        Ok(())
    }

    /// Writes a length.
    pub(super) fn store_length(&mut self, pointer: u32, length: usize) -> Result<(), Errno> {
        let length = u32::try_from(length).map_err(|_| Errno::Invalid)?;
        self.store(pointer, length.to_le_bytes())
    }

    /// Reads a list of buffers, each a pointer and a length.
    pub(super) fn buffers(&self, list: u32, count: u32) -> Result<Vec<Span>, Errno> {
        let buffer = |place| {
            let bytes: [u8; 8] = self.load(place)?;
            Ok(Span::new(u32_at(&bytes, 0), u32_at(&bytes, 4)))
        };
        places(list, count, 8)?
            .map(|place| buffer(place?))
            .collect()
    }
}

/// The addresses of a list's records; the list's length is limited.
pub(super) fn places(
    list: u32,
    count: u32,
    record_bytes: u32,
) -> Result<impl Iterator<Item = Result<u32, Errno>>, Errno> {
    if count > WASI_LIST_MAX {
        return Err(Errno::Invalid);
    }
    let place = move |index: u32| list.checked_add(index.checked_mul(record_bytes)?);
    Ok((0..count).map(move |index| place(index).ok_or(Errno::BadPointer)))
}

/// A number within a record; 0 past its end.
pub(super) fn u32_at(record: &[u8], offset: usize) -> u32 {
    field(record, offset).map_or(0, u32::from_le_bytes)
}

/// A number within a record; 0 past its end.
pub(super) fn u64_at(record: &[u8], offset: usize) -> u64 {
    field(record, offset).map_or(0, u64::from_le_bytes)
}

fn field<const LENGTH: usize>(record: &[u8], offset: usize) -> Option<[u8; LENGTH]> {
    record.get(offset..)?.first_chunk().copied()
}

fn record<const LENGTH: usize>(pointer: u32) -> Result<Span, Errno> {
    let length = u32::try_from(LENGTH).map_err(|_| Errno::Invalid)?;
    Ok(Span::new(pointer, length))
}
