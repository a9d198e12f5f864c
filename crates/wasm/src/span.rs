//! A range of a guest's memory, as the guest passes it.

/// A range in a guest's memory, unchecked until it is resolved.
///
/// Pointers and lengths are unsigned, as in WebAssembly: a negative one is a huge one, and so is
/// outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) pointer: u32,
    pub(crate) length: u32,
}

impl Span {
    pub(crate) fn new(pointer: u32, length: u32) -> Self {
        Self { pointer, length }
    }

    /// The bytes, if the whole range is within the memory.
    pub(crate) fn read(self, memory: &[u8]) -> Option<&[u8]> {
        memory.get(self.range()?)
    }

    /// The bytes to write, if the whole range is within the memory.
    pub(crate) fn write(self, memory: &mut [u8]) -> Option<&mut [u8]> {
        memory.get_mut(self.range()?)
    }

    fn range(self) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(self.pointer).ok()?;
        let end = start.checked_add(usize::try_from(self.length).ok()?)?;
        Some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_is_read_only_if_all_of_it_lies_within_the_memory() {
        let memory = [1, 2, 3, 4];
        let read = |pointer, length| Span { pointer, length }.read(&memory);
        assert_eq!(read(1, 2), Some(&memory[1..3]));
        assert_eq!(read(4, 0), Some(&memory[4..]));
        assert_eq!(read(3, 2), None);
        assert_eq!(read(5, 0), None);
        assert_eq!(read(u32::MAX, u32::MAX), None);
        assert_eq!(read(0, u32::MAX), None);
    }
}
