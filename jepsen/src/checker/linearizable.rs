//! Whether calls to one register look as if each took effect at one moment between its start and
//! its end (Wing and Gong's search, with the cache of visited states that Lowe added).

use std::collections::HashSet;

/// The effect of a call on a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read this value, or none.
    Read(Option<u64>),
    /// Set this value.
    Write(u64),
    /// Set `to` because the value was `from`.
    Swap {
        /// The expected value.
        from: u64,
        /// The new value.
        to: u64,
    },
    /// Was refused because the value was a different one.
    SwapRefused {
        /// The expected value.
        from: u64,
    },
}

/// A call to a register. Calls that certainly had no effect, and reads without a response, are left out.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The start.
    pub invoked_us: u64,
    /// The end; `None` if the call may take effect at any later time, or never.
    pub returned_us: Option<u64>,
    /// The effect.
    pub access: Access,
}

/// The calls that have taken effect, one bit each, and the resulting value.
type State = (Vec<u64>, Option<u64>);

/// Whether a single register could have answered like this with the calls in some order. The
/// register is empty at first.
#[must_use]
pub fn is_linearizable(calls: &[Call]) -> bool {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.invoked_us);
    let start: State = (vec![0; calls.len().div_ceil(64)], None);
    let mut seen = HashSet::from([start.clone()]);
    let mut open = vec![start];
    while let Some((done, value)) = open.pop() {
        let waiting = |index: &usize| done[index / 64] & (1 << (index % 64)) == 0;
        let ends = (0..calls.len())
            .filter(waiting)
            .filter_map(|index| calls[index].returned_us);
        // A call that starts after the first of them has ended cannot be before it.
        let Some(first_end) = ends.min() else {
            return true;
        };
        let candidates = (0..calls.len())
            .take_while(|&index| calls[index].invoked_us <= first_end)
            .filter(waiting);
        // Last in, first out: calls with a known result are tried before those with an unknown one.
        let (known, unknown): (Vec<usize>, Vec<usize>) =
            candidates.partition(|&index| calls[index].returned_us.is_some());
        for index in unknown.into_iter().chain(known.into_iter().rev()) {
            let Some(value) = calls[index].access.follow(value) else {
                continue;
            };
            let mut done = done.clone();
            done[index / 64] |= 1 << (index % 64);
            let next = (done, value);
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    false
}

impl Access {
    /// The value of a register with `value` after this access; `None` if a register with that
    /// value would have answered differently.
    fn follow(self, value: Option<u64>) -> Option<Option<u64>> {
        match self {
            Self::Read(seen) => (seen == value).then_some(value),
            Self::Write(new) => Some(Some(new)),
            Self::Swap { from, to } => (value == Some(from)).then_some(Some(to)),
            Self::SwapRefused { from } => (value != Some(from)).then_some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Access::{Read, Swap, SwapRefused, Write};
    use super::*;

    fn call(invoked_us: u64, returned_us: u64, access: Access) -> Call {
        Call {
            invoked_us,
            returned_us: Some(returned_us),
            access,
        }
    }

    fn unknown(invoked_us: u64, access: Access) -> Call {
        Call {
            invoked_us,
            returned_us: None,
            access,
        }
    }

    #[test]
    fn a_read_sees_a_write_that_ended_before_it() {
        let written = [call(0, 1, Write(1)), call(2, 3, Read(Some(1)))];
        assert!(is_linearizable(&written));
        let stale = [call(0, 1, Write(1)), call(2, 3, Read(None))];
        assert!(!is_linearizable(&stale));
    }

    #[test]
    fn writes_at_the_same_time_have_any_order_but_only_one() {
        let writes = [call(0, 9, Write(1)), call(0, 9, Write(2))];
        let both = |first, second| {
            let reads = [
                call(10, 11, Read(Some(first))),
                call(12, 13, Read(Some(second))),
            ];
            is_linearizable(&[&writes[..], &reads].concat())
        };
        assert!(both(1, 1));
        assert!(both(2, 2));
        assert!(!both(1, 2));
    }

    #[test]
    fn an_unknown_write_happens_once_late_or_never() {
        let late = [
            unknown(0, Write(2)),
            call(1, 2, Write(1)),
            call(3, 4, Read(Some(1))),
            call(5, 6, Read(Some(2))),
        ];
        assert!(is_linearizable(&late));
        assert!(is_linearizable(&late[..3]));
        let back = [&late[..], &[call(7, 8, Read(Some(1)))]].concat();
        assert!(!is_linearizable(&back), "it cannot happen twice");
    }

    #[test]
    fn a_lost_write_is_found() {
        let lost = [
            call(0, 1, Write(1)),
            call(2, 3, Write(2)),
            call(4, 5, Read(Some(1))),
        ];
        assert!(!is_linearizable(&lost));
    }

    #[test]
    fn two_swaps_of_one_value_do_not_both_succeed() {
        let swap = |to| call(2, 9, Swap { from: 1, to });
        assert!(is_linearizable(&[call(0, 1, Write(1)), swap(2)]));
        assert!(!is_linearizable(&[call(0, 1, Write(1)), swap(2), swap(3)]));
        let refused = call(2, 9, SwapRefused { from: 1 });
        assert!(!is_linearizable(&[call(0, 1, Write(1)), refused]));
        assert!(is_linearizable(&[call(0, 1, Write(1)), swap(2), refused]));
    }

    #[test]
    fn many_concurrent_calls_are_judged() {
        let mut calls: Vec<Call> = (0..40)
            .flat_map(|round| {
                let at = round * 10;
                let write = |value| call(at, at + 5, Write(round * 4 + value));
                [
                    write(0),
                    write(1),
                    write(2),
                    call(at + 6, at + 8, Read(Some(round * 4 + 1))),
                ]
            })
            .collect();
        calls.extend((0..6).map(|value| unknown(3, Write(1_000 + value))));
        assert!(is_linearizable(&calls));
        calls.push(call(1_000, 1_001, Read(Some(1))));
        assert!(!is_linearizable(&calls));
    }
}
