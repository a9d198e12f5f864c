//! The state of a WASI command: its streams, its name and its variables.

use super::answer::{Errno, Refused};
use super::stderr::Stderr;
use crate::error::Failure;
use crate::flo::requests::HasRequests;
use crate::limits::Limits;
use crate::log::Logs;
use crate::sandbox::Requests;
use crate::task::Task;
use std::time::Instant;

/// The state of one command.
pub(crate) struct Process {
    arguments: [String; 1],
    variables: [String; 3],
    /// The input, and how far it was read.
    stdin: Vec<u8>,
    stdin_position: usize,
    stdout: Vec<u8>,
    stdout_bytes_max: usize,
    pub(super) stderr: Stderr,
    is_open: [bool; 3],
    /// The zero of the monotonic clock.
    pub(super) started: Instant,
    /// The first function for files or network that was called.
    denied: Option<&'static str>,
    /// What it has asked for beside its result.
    requests: Requests,
}

/// What a command has produced when it has ended.
pub(super) struct EndedProcess {
    /// What it wrote to stdout.
    pub(super) output: Vec<u8>,
    /// The last line of stderr.
    pub(super) last_line: Option<String>,
    /// The first function for files or network that it called.
    pub(super) denied: Option<&'static str>,
    /// What it asked for beside its result.
    pub(super) requests: Requests,
}

/// One of the three descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdin,
    Stdout,
    Stderr,
}

impl Process {
    pub(super) fn new(task: &Task<'_>, input: &[u8], limits: &Limits) -> Self {
        Self {
            arguments: [task.action.to_owned()],
            variables: [
                format!("FLO_RUN_ID={}", task.run_id),
                format!("FLO_ACTION={}", task.action),
                format!("FLO_ATTEMPT={}", task.attempt),
            ],
            stdin: input.to_vec(),
            stdin_position: 0,
            stdout: Vec::new(),
            stdout_bytes_max: limits.max_output_bytes(),
            stderr: Stderr::default(),
            is_open: [true; 3],
            started: Instant::now(),
            denied: None,
            requests: Requests::default(),
        }
    }

    pub(super) fn arguments(&self) -> &[String] {
        &self.arguments
    }

    pub(super) fn variables(&self) -> &[String] {
        &self.variables
    }

    /// The open stream with this descriptor.
    pub(super) fn stream(&self, descriptor: u32) -> Result<Stream, Errno> {
        let stream = match descriptor {
            0 => Stream::Stdin,
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            _ => return Err(Errno::BadDescriptor),
        };
        if self.is_open[stream.index()] {
            Ok(stream)
        } else {
            Err(Errno::BadDescriptor)
        }
    }

    pub(super) fn close(&mut self, descriptor: u32) -> Result<(), Errno> {
        let stream = self.stream(descriptor)?;
        self.is_open[stream.index()] = false;
        Ok(())
    }

    /// The rest of the input.
    pub(super) fn unread(&self) -> &[u8] {
        self.stdin.get(self.stdin_position..).unwrap_or_default()
    }

    /// Copies the next bytes of the input into a buffer, and returns how many.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let unread = self.unread();
        let length = unread.len().min(buffer.len());
        buffer[..length].copy_from_slice(&unread[..length]);
        self.stdin_position += length;
        length
    }

    /// # Errors
    /// The call ends when the output gets longer than the action may answer.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        let bytes_max = self.stdout_bytes_max;
        if bytes.len() > bytes_max - self.stdout.len() {
            return Err(Refused::Ended(Failure::OutputOverrun { bytes_max }.into()));
        }
        self.stdout.extend_from_slice(bytes);
        Ok(())
    }

    /// Records a call for files or network, and returns the guest's error.
    pub(super) fn deny(&mut self, function: &'static str) -> Errno {
        self.denied.get_or_insert(function);
        Errno::NotCapable
    }

    /// Ends the command and returns what it has produced.
    pub(super) fn end(self, logs: &mut Logs) -> EndedProcess {
        EndedProcess {
            output: self.stdout,
            last_line: self.stderr.end(logs),
            denied: self.denied,
            requests: self.requests,
        }
    }
}

impl HasRequests for Process {
    fn requests(&mut self) -> &mut Requests {
        &mut self.requests
    }
}

impl Stream {
    fn index(self) -> usize {
        match self {
            Self::Stdin => 0,
            Self::Stdout => 1,
            Self::Stderr => 2,
        }
    }
}
