//! Streams of run numbers, newest first.

use crate::ids::RunNumber;
use crate::store::{KeyRange, Order, Reader, StoreError};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Rows per read.
const CHUNK_ROWS: usize = 64;

/// Run numbers in descending order. It is asked for ever smaller ones.
pub(super) enum Stream {
    /// Those of rows that end with the number, under any of these prefixes.
    Indexed(Vec<Prefix>),
    /// Those that were collected; the last is the next.
    Collected(Vec<RunNumber>),
}

/// The rows under one prefix of an index.
pub(super) struct Prefix {
    prefix: Vec<u8>,
    buffer: VecDeque<RunNumber>,
    is_exhausted: bool,
}

impl Stream {
    /// The stream of the rows under `prefixes`, which must differ.
    pub(super) fn indexed(prefixes: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let prefixes = prefixes.into_iter().map(|prefix| Prefix {
            prefix,
            buffer: VecDeque::new(),
            is_exhausted: false,
        });
        Self::Indexed(prefixes.collect())
    }

    /// The stream of these numbers, in any order.
    pub(super) fn collected(mut numbers: Vec<RunNumber>) -> Self {
        numbers.sort_unstable();
        numbers.dedup();
        Self::Collected(numbers)
    }

    /// The largest number that is at most `bound`. Adds the rows that it looked at to `row_count`.
    pub(super) fn at_or_below(
        &mut self,
        reader: &dyn Reader,
        bound: RunNumber,
        row_count: &mut usize,
    ) -> Result<Option<RunNumber>, StoreError> {
        match self {
            Self::Indexed(prefixes) => {
                let mut largest = None;
                for prefix in prefixes {
                    let next = prefix.at_or_below(reader, bound, row_count)?;
                    largest = largest.max(next);
                }
                Ok(largest)
            }
            Self::Collected(numbers) => {
                while numbers.pop_if(|number| *number > bound).is_some() {}
                Ok(numbers.last().copied())
            }
        }
    }
}

impl Prefix {
    fn at_or_below(
        &mut self,
        reader: &dyn Reader,
        bound: RunNumber,
        row_count: &mut usize,
    ) -> Result<Option<RunNumber>, StoreError> {
        while self.buffer.pop_front_if(|number| *number > bound).is_some() {}
        if self.buffer.is_empty() && !self.is_exhausted {
            self.refill(reader, bound)?;
            *row_count += self.buffer.len();
        }
        Ok(self.buffer.front().copied())
    }

    fn refill(&mut self, reader: &dyn Reader, bound: RunNumber) -> Result<(), StoreError> {
        let mut to = self.prefix.clone();
        to.extend_from_slice(&bound.0.to_be_bytes());
        to.push(0);
        let range = KeyRange {
            from: self.prefix.clone(),
            to,
        };
        reader.scan(&range, Order::Descending, &mut |key, _| {
            self.buffer.extend(number_of(key));
            if self.buffer.len() < CHUNK_ROWS {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        self.is_exhausted = self.buffer.len() < CHUNK_ROWS;
        Ok(())
    }
}

/// The run's number at the end of an index row's key.
pub(super) fn number_of(key: &[u8]) -> Option<RunNumber> {
    let (_, number) = key.split_last_chunk()?;
    Some(RunNumber(u64::from_be_bytes(*number)))
}
