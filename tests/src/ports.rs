//! Free ports on loopback.

use std::net::{Ipv4Addr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Below the ephemeral range, from which systems take ports for outgoing connections. A port of that range
/// could be taken by a client while its node is down, or even be connected to itself.
const FIRST: u16 = 10_000;
const COUNT: u16 = 20_000;

/// A free port that is followed by `count − 1` free ports. No other call in this process gets
/// one of them.
///
/// # Panics
/// When there are no free ports left.
pub(crate) fn draw(count: u16) -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    // Concurrent test processes start at different places.
    let start = u16::try_from(process::id() % u32::from(COUNT)).expect("less than a u16");
    for _ in 0..COUNT / count {
        let offset = NEXT.fetch_add(count, Ordering::Relaxed);
        let first = FIRST + start.wrapping_add(offset) % (COUNT - count);
        if (first..first + count).all(is_free) {
            return first;
        }
    }
    panic!("expected {count} free ports in a row, but there are none");
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}
