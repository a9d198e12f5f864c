//! The clients: they place orders, pay for them and count the results.

use crate::calls::{self, insist, runs};
use crate::counter::Counter;
use flotilla_client::Client;
use flotilla_client::v1;
use flotilla_tests::TIMEOUT;
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// The number of concurrent clients.
const CLIENTS: usize = 8;
/// The interval between checks of the runs.
const PAUSE: Duration = Duration::from_millis(250);

/// The number of an order, and its acknowledged run.
pub(crate) type Placed = BTreeMap<u64, String>;

/// Calls the cluster as its users do.
#[derive(Debug)]
pub(crate) struct Orders {
    endpoints: Vec<String>,
}

impl Orders {
    pub(crate) fn new(endpoints: Vec<String>) -> Self {
        Self { endpoints }
    }

    /// A new client that knows all nodes and calls the order's node first.
    pub(crate) fn client(&self, order: u64) -> Client {
        let turn = usize::try_from(order % 3).expect("less than 3");
        calls::client(&self.endpoints, turn)
    }

    /// Places and pays for this many orders, whatever happens to the nodes.
    pub(crate) async fn place_all(self: Arc<Self>, orders: u64, counter: Arc<Counter>) -> Placed {
        let place = |order| {
            let orders = self.clone();
            let counter = counter.clone();
            async move {
                let run_id = orders.place(order).await;
                counter.add();
                (order, run_id)
            }
        };
        stream::iter(0..orders)
            .map(place)
            .buffer_unordered(CLIENTS)
            .collect()
            .await
    }

    /// Waits until this many orders have completed; no order may end in another way.
    pub(crate) async fn await_completion(&self, orders: u64) {
        let client = self.client(0);
        let mut waited = Duration::ZERO;
        loop {
            let rows = runs(&client, "parcel").await;
            let count = |status| rows.iter().filter(|row| row.status() == status).count();
            for status in [v1::RunStatus::Failed, v1::RunStatus::TimedOut] {
                assert_eq!(count(status), 0, "no order fails: {rows:#?}");
            }
            let completed = count(v1::RunStatus::Completed);
            if u64::try_from(completed) == Ok(orders) {
                return;
            }
            assert!(
                waited < 3 * TIMEOUT,
                "expected {orders} completed orders, but there are {completed}: {rows:#?}"
            );
            tokio::time::sleep(PAUSE).await;
            waited += PAUSE;
        }
    }

    /// Expects each order to be one run: the acknowledged one.
    pub(crate) async fn expect_once(&self, placed: &Placed) {
        let client = self.client(0);
        for (&order, run_id) in placed {
            let repeated = client.start_run(start(order)).await;
            let repeated = repeated.expect("a key is honored for as long as its run is kept");
            assert_eq!((&repeated.run_id, repeated.existing), (run_id, true));
        }
        let acknowledged: BTreeSet<&String> = placed.values().collect();
        assert_eq!(acknowledged.len(), placed.len(), "two orders are one run");
        let parcels = runs(&client, "parcel").await;
        let found: BTreeSet<&String> = parcels.iter().map(|row| &row.run_id).collect();
        assert_eq!(found, acknowledged, "runs are lost or duplicated");
        assert_eq!(parcels.len(), placed.len());
        let children = runs(&client, "packing").await;
        assert_eq!(children.len(), placed.len(), "each order has one child");
    }

    /// Starts the run and pays for it; calls without a response are retried.
    async fn place(&self, order: u64) -> String {
        let client = self.client(order);
        let started = insist(|| client.start_run(start(order))).await;
        let payment = || v1::SignalRunRequest {
            run_id: started.run_id.clone(),
            r#type: "payment".to_owned(),
            payload: json!({"by": payer(order)}).to_string().into(),
            signal_id: format!("payment-{order}"),
            ..v1::SignalRunRequest::default()
        };
        insist(|| client.signal_run(payment())).await;
        let again = insist(|| client.signal_run(payment())).await;
        assert!(again.existing, "the second payment of {order} is known");
        started.run_id
    }
}

/// The result of an order.
pub(crate) fn output(order: u64) -> Value {
    let price = price(order);
    json!({
        "order": order,
        "price": price,
        "boxes": boxes(order),
        "paid_by": payer(order),
        "label": format!("parcel {order} for {price}"),
    })
}

pub(crate) fn price(order: u64) -> u64 {
    100 + order * 7
}

pub(crate) fn boxes(order: u64) -> u64 {
    1 + order % 4
}

/// How often each of an order's actions fails before it succeeds.
pub(crate) fn failures(order: u64) -> u64 {
    order % 3
}

fn payer(order: u64) -> String {
    format!("customer-{order}")
}

fn start(order: u64) -> v1::StartRunRequest {
    v1::StartRunRequest {
        workflow: "parcel".to_owned(),
        input: json!({"order": order}).to_string().into(),
        idempotency_key: format!("order-{order}"),
        ..v1::StartRunRequest::default()
    }
}
