//! Reads and writes the three streams.

use super::answer::{Errno, Refused};
use super::memory::Memory;
use super::process::{Process, Stream};
use crate::guest::Guest;
use crate::limits::WASI_COPY_BYTES_MAX;

/// The right `fd_read`, as a bit.
const READ: u64 = 1 << 1;
/// The right `fd_write`, as a bit.
const WRITE: u64 = 1 << 6;
/// The right `poll_fd_readwrite`, as a bit.
const POLL: u64 = 1 << 27;

/// Which memory of the guest a call reads or writes.
#[derive(Clone, Copy)]
pub(super) struct Transfer {
    /// A pointer to the list of buffers.
    pub(super) buffers: u32,
    /// The number of buffers.
    pub(super) count: u32,
    /// A pointer to the number of bytes that were transferred.
    pub(super) result: u32,
}

/// Reads the input: all of it is available, so 0 bytes mean its end.
pub(super) fn read(
    guest: &mut Guest<Process>,
    memory: &mut Memory<'_>,
    descriptor: u32,
    transfer: Transfer,
) -> Result<(), Refused> {
    match guest.state.stream(descriptor)? {
        Stream::Stdin => {}
        Stream::Stdout | Stream::Stderr => return Err(Errno::BadDescriptor.into()),
    }
    memory.store_length(transfer.result, 0)?;
    let mut done = 0;
    for buffer in memory.buffers(transfer.buffers, transfer.count)? {
        done += guest.state.read(memory.write(buffer)?);
    }
    Ok(memory.store_length(transfer.result, done)?)
}

/// Writes to stdout or stderr, at most a limited number of bytes per call, as the returned length
/// says. The guest then calls again, and so can be interrupted.
pub(super) fn write(
    guest: &mut Guest<Process>,
    memory: &mut Memory<'_>,
    descriptor: u32,
    transfer: Transfer,
) -> Result<(), Refused> {
    let stream = guest.state.stream(descriptor)?;
    // Checked first, so that a guest that retries writes nothing twice.
    memory.store_length(transfer.result, 0)?;
    let mut done = 0;
    for buffer in memory.buffers(transfer.buffers, transfer.count)? {
        let bytes = memory.read(buffer)?;
        let bytes = &bytes[..bytes.len().min(WASI_COPY_BYTES_MAX - done)];
        match stream {
            Stream::Stdin => return Err(Errno::BadDescriptor.into()),
            Stream::Stdout => guest.state.write(bytes)?,
            Stream::Stderr => guest.state.stderr.write(bytes, &mut guest.logs),
        }
        done += bytes.len();
    }
    Ok(memory.store_length(transfer.result, done)?)
}

/// A stream has an unknown type, as a pipe has: so no library takes it for a terminal.
pub(super) fn descriptor_status(
    process: &Process,
    memory: &mut Memory<'_>,
    descriptor: u32,
    result: u32,
) -> Result<(), Refused> {
    let rights = POLL
        | match process.stream(descriptor)? {
            Stream::Stdin => READ,
            Stream::Stdout | Stream::Stderr => WRITE,
        };
    let mut status = [0; 24];
    status[8..16].copy_from_slice(&rights.to_le_bytes());
    Ok(memory.store(result, status)?)
}

/// Type, size and times are all unknown.
pub(super) fn file_status(
    process: &Process,
    memory: &mut Memory<'_>,
    descriptor: u32,
    result: u32,
) -> Result<(), Refused> {
    process.stream(descriptor)?;
    Ok(memory.store(result, [0; 64])?)
}
