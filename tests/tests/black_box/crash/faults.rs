//! The schedule of kills.

use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use std::env;

/// Which nodes are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kill {
    Leader,
    Follower,
    All,
}

/// Nodes that are killed and started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) kill: Kill,
    /// They are killed when this many orders are placed.
    pub(crate) after_orders: u64,
    /// They are restarted when this many orders are placed.
    pub(crate) back_after_orders: u64,
}

impl Fault {
    /// All nodes, when all orders are placed.
    pub(crate) fn last(orders: u64) -> Self {
        Self {
            kill: Kill::All,
            after_orders: orders,
            back_after_orders: orders,
        }
    }
}

/// The seed of the environment, or a new one.
pub(crate) fn seed() -> u64 {
    let given = env::var("FLOTILLA_SEED").ok();
    given.map_or_else(rand::random, |text| {
        text.parse().expect("a seed is a number")
    })
}

/// Twenty faults, spread over the orders. Each kind is among them.
pub(crate) fn schedule(seed: u64, orders: u64) -> Vec<Fault> {
    let mut random = StdRng::seed_from_u64(seed);
    let kinds = [(Kill::Leader, 9), (Kill::Follower, 7), (Kill::All, 4)];
    let mut kills: Vec<Kill> = kinds
        .iter()
        .flat_map(|&(kill, times)| vec![kill; times])
        .collect();
    kills.shuffle(&mut random);
    let share = orders / u64::try_from(kills.len()).expect("a small number");
    let mut fault = |(kill, start): (Kill, u64)| {
        let after_orders = start + random.random_range(0..share / 2);
        // With all nodes down no order could be placed.
        let is_back_at_once = kill == Kill::All || random.random_bool(0.5);
        let back_after_orders = match is_back_at_once {
            true => after_orders,
            false => after_orders + random.random_range(1..share / 2),
        };
        Fault {
            kill,
            after_orders,
            back_after_orders,
        }
    };
    let starts = (0..orders).step_by(usize::try_from(share).expect("a small number"));
    kills.into_iter().zip(starts).map(&mut fault).collect()
}

#[test]
fn a_seed_draws_the_same_faults_again_and_each_kind_is_among_them() {
    let faults = schedule(7, 300);
    assert_eq!(faults, schedule(7, 300));
    assert_ne!(faults, schedule(8, 300));
    for kill in [Kill::Leader, Kill::Follower, Kill::All] {
        assert!(faults.iter().any(|fault| fault.kill == kill), "{kill:?}");
    }
    let is_apart = |pair: &[Fault]| pair[0].back_after_orders <= pair[1].after_orders;
    assert!(faults.windows(2).all(is_apart), "{faults:?}");
}
