//! Assembles a message of a stream in a buffer of its size.

use std::mem;
use tonic::Status;
use tonic::codegen::Bytes;

/// A message while it arrives.
#[derive(Debug)]
pub(super) struct Assembly {
    length_max: usize,
    prefix: [u8; Self::PREFIX_BYTES],
    prefix_bytes: usize,
    /// The length of the message, once its prefix has arrived.
    length: usize,
    content: Vec<u8>,
}

impl Assembly {
    /// Before each message: a byte that says whether it is compressed, and its length in four bytes.
    pub(super) const PREFIX_BYTES: usize = 5;
    /// The first allocation, unless the message is shorter. In bytes.
    const ALLOCATED_MIN: usize = 16 << 10;

    /// No message yet. Each may have `length_max` bytes.
    pub(super) fn new(length_max: usize) -> Self {
        Self {
            length_max,
            prefix: [0; Self::PREFIX_BYTES],
            prefix_bytes: 0,
            length: 0,
            content: Vec::new(),
        }
    }

    /// The prefix of the message.
    pub(super) fn prefix(&self) -> [u8; Self::PREFIX_BYTES] {
        self.prefix
    }

    /// The length of the message, once its prefix has arrived. In bytes.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Whether a message has begun and has not ended.
    pub(super) fn has_begun(&self) -> bool {
        self.prefix_bytes > 0
    }

    /// Takes what has arrived of the prefix; true once all of it has.
    pub(super) fn take_prefix(&mut self, data: &mut Bytes) -> Result<bool, Status> {
        let (from, missing) = (self.prefix_bytes, Self::PREFIX_BYTES - self.prefix_bytes);
        if missing == 0 {
            return Ok(true);
        }
        let taken = data.split_to(missing.min(data.len()));
        self.prefix_bytes += taken.len();
        self.prefix[from..self.prefix_bytes].copy_from_slice(&taken);
        if self.prefix_bytes < Self::PREFIX_BYTES {
            return Ok(false);
        }
        let [compression, length @ ..] = self.prefix;
        self.length = u32::from_be_bytes(length) as usize;
        if compression != 0 {
            return Err(Status::unimplemented(
                "expected a message without compression, but it is compressed",
            ));
        }
        if self.length > self.length_max {
            let (max, length) = (self.length_max, self.length);
            return Err(Status::out_of_range(format!(
                "expected a message of at most {max} bytes, but it has {length}"
            )));
        }
        Ok(true)
    }

    /// The length of the content, with what `data` has of it.
    pub(super) fn length_with(&self, data: &Bytes) -> usize {
        self.length.min(self.content.len() + data.len())
    }

    /// Takes what has arrived of the content. It never allocates more than the message needs.
    pub(super) fn take_content(&mut self, data: &mut Bytes) {
        let length = self.length_with(data);
        if length > self.content.capacity() {
            let wanted = (2 * length).max(Self::ALLOCATED_MIN).min(self.length);
            self.content.reserve_exact(wanted - self.content.len());
        }
        let taken = data.split_to(length - self.content.len());
        self.content.extend_from_slice(&taken);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.prefix_bytes == Self::PREFIX_BYTES && self.content.len() == self.length
    }

    /// The content of a complete message. The next one may begin.
    pub(super) fn finish(&mut self) -> Bytes {
        self.prefix_bytes = 0;
        mem::take(&mut self.content).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_assembled_in_as_much_memory_as_it_has() {
        for bytes in [100, 20_000, 300_000] {
            let content = vec![b'x'; bytes];
            let [a, b, c, d] = u32::try_from(bytes).expect("a length").to_be_bytes();
            let prefix = [0, a, b, c, d];
            let mut assembly = Assembly::new(bytes);
            for part in [&prefix, &content[..]].concat().chunks(16_384) {
                let mut data = Bytes::copy_from_slice(part);
                assert_eq!(assembly.take_prefix(&mut data).ok(), Some(true));
                assembly.take_content(&mut data);
                let most = (3 * assembly.content.len()).max(Assembly::ALLOCATED_MIN);
                assert!(assembly.content.capacity() <= most.min(bytes));
            }
            assert!(assembly.is_complete());
            assert_eq!(assembly.content.capacity(), bytes);
        }
    }
}
