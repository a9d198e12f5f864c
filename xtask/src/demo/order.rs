//! The orders of the demo.

use std::fmt;

/// `check-approval-needed` asks for an approval above this amount, in the shop's currency.
const APPROVAL_LIMIT: u32 = 500;

/// The workflow with an approval.
pub(super) const ORDER_PROCESSING: &str = "order-processing";
/// The workflow without one.
pub(super) const PROCESS_ORDER: &str = "process-order";

/// An order: the input of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) workflow: &'static str,
    /// Also its idempotency key.
    pub(super) id: &'static str,
    amount: u32,
    card: &'static str,
}

/// Orders that are placed before the others and can reach their approval.
pub(super) const EARLY: [Order; 4] = [
    Order::new(ORDER_PROCESSING, "A-1", 120),
    Order::new(ORDER_PROCESSING, "A-2", 2_400),
    Order::new(ORDER_PROCESSING, "A-3", 64),
    Order::new(ORDER_PROCESSING, "A-4", 980),
];

/// Orders whose payment is in progress when the leader dies. The bank of the second one fails at first.
pub(super) const INTERRUPTED: [Order; 4] = [
    Order::new(PROCESS_ORDER, "B-1", 19),
    Order {
        card: "4000",
        ..Order::new(PROCESS_ORDER, "B-2", 250)
    },
    Order::new(PROCESS_ORDER, "B-3", 75),
    Order::new(PROCESS_ORDER, "B-4", 12),
];

/// The order that arrives while there is no leader.
pub(super) const OF_GAP: Order = Order::new(PROCESS_ORDER, "B-5", 30);

/// Orders that the two remaining nodes take.
pub(super) const LATE: [Order; 2] = [
    Order::new(ORDER_PROCESSING, "A-5", 730),
    Order::new(PROCESS_ORDER, "B-6", 44),
];

impl Order {
    const fn new(workflow: &'static str, id: &'static str, amount: u32) -> Self {
        Self {
            workflow,
            id,
            amount,
            card: "4242",
        }
    }

    /// The run's input, as JSON.
    pub(super) fn input(&self) -> String {
        let Self {
            id, amount, card, ..
        } = self;
        format!(r#"{{"order_id":"{id}","amount":{amount}.00,"card":"{card}"}}"#)
    }

    /// Whether its run waits for an approval.
    pub(super) fn needs_approval(&self) -> bool {
        self.workflow == ORDER_PROCESSING && self.amount > APPROVAL_LIMIT
    }
}

impl fmt::Display for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            workflow,
            id,
            amount,
            ..
        } = self;
        write!(formatter, "{workflow:<16}  order {id} for {amount:>4}.00")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn all() -> Vec<Order> {
        [&EARLY[..], &INTERRUPTED, &[OF_GAP], &LATE].concat()
    }

    #[test]
    fn every_order_has_an_id_of_its_own_and_a_json_input() {
        let mut ids: Vec<&str> = all().iter().map(|order| order.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all().len());
        for order in all() {
            let input: Value = serde_json::from_str(&order.input()).unwrap();
            assert_eq!(input["order_id"], order.id);
        }
    }

    #[test]
    fn an_order_waits_for_an_approval_when_the_leader_dies() {
        assert!(EARLY.iter().any(Order::needs_approval));
        assert!(!EARLY.iter().all(Order::needs_approval));
        assert!(!INTERRUPTED.iter().any(Order::needs_approval));
    }
}
