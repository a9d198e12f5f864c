//! The orders that were taken, and their runs.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::order::{EARLY, INTERRUPTED, LATE, OF_GAP, Order};
use super::runs::{Started, current_step, start, statuses};
use crate::client::Client;
use crate::cluster::{Cluster, NodeId};
use crate::interrupt::Interrupt;
use crate::stages::{say, show_ms};
use crate::wait::wait_for;

/// How long to wait for runs that take seconds on an idle machine.
const LIMIT: Duration = Duration::from_secs(60);

/// An order whose start was acknowledged.
pub(super) struct Taken {
    pub(super) order: Order,
    pub(super) run_id: String,
}

impl Taken {
    /// Whether its run belongs to this workflow.
    pub(super) fn is_of(&self, workflow: &str) -> bool {
        self.order.workflow == workflow
    }
}

/// All orders that were taken.
#[derive(Default)]
pub(super) struct OrderBook {
    taken: Vec<Taken>,
}

impl OrderBook {
    /// The orders, oldest first.
    pub(super) fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// Takes the early orders and waits until the expensive ones wait for an approval.
    pub(super) fn take_early_orders(
        &mut self,
        cluster: &Cluster,
        interrupt: &Interrupt,
    ) -> Result<()> {
        self.take_in_turn(cluster, &EARLY)?;
        self.repeat_first(cluster)?;
        let client = cluster.client();
        for Taken { run_id, .. } in self.to_approve() {
            let what = format!("run {run_id} to wait for an approval");
            wait_for(&what, LIMIT, interrupt, || {
                let step = current_step(&client, run_id)?;
                Ok((step["waiting_for"] == "signal").then_some(()))
            })?;
            say(format!("{run_id:<8}  waits for the signal `approval`"));
        }
        Ok(())
    }

    /// Takes the orders that the crash interrupts, and waits until each is being charged.
    pub(super) fn take_orders_to_interrupt(
        &mut self,
        cluster: &Cluster,
        interrupt: &Interrupt,
    ) -> Result<()> {
        self.take_in_turn(cluster, &INTERRUPTED)?;
        let client = cluster.client();
        for Taken { run_id, .. } in &self.taken[EARLY.len()..] {
            wait_for(&format!("run {run_id} to charge"), LIMIT, interrupt, || {
                let step = current_step(&client, run_id)?;
                Ok((step["step"] == "charge").then_some(()))
            })?;
        }
        Ok(())
    }

    /// Takes an order while there is no leader: the call returns once there is one.
    ///
    /// # Errors
    /// If the start is refused.
    pub(super) fn take_order_of_gap(
        &mut self,
        cluster: &Cluster,
        dead: NodeId,
        killed_at: Instant,
    ) -> Result<Duration> {
        let client = cluster.client_of(|node_id| node_id != dead);
        let started = start(&client, &OF_GAP)?;
        let gap = killed_at.elapsed();
        let (run_id, time) = (&started.run_id, show_ms(gap));
        say(format!(
            "{run_id:<8}  {OF_GAP}, acknowledged {time} after the kill"
        ));
        self.note(OF_GAP, started)?;
        Ok(gap)
    }

    /// Takes the late orders through the nodes that are alive.
    pub(super) fn take_late_orders(&mut self, cluster: &Cluster, dead: NodeId) -> Result<()> {
        let living = cluster.node_ids().filter(|node_id| *node_id != dead);
        for (order, node_id) in LATE.into_iter().zip(living) {
            self.take_through(cluster, node_id, order)?;
        }
        Ok(())
    }

    /// Sends the approvals, also to a run that does not wait for its approval yet.
    pub(super) fn approve(&self, cluster: &Cluster, dead: NodeId) -> Result<()> {
        let client = cluster.client_of(|node_id| node_id != dead);
        for Taken { order, run_id } in self.to_approve() {
            let id = format!("approval-{}", order.id);
            let payload = r#"{"decision":"approved","by":"Ada"}"#;
            let call = ["workflow", "signal", run_id, payload];
            client.object(&[&call[..], &["--type", "approval", "--id", &id]].concat())?;
            say(format!("{run_id:<8}  order {} approved", order.id));
        }
        Ok(())
    }

    /// Waits until every run has ended.
    ///
    /// # Errors
    /// If a run is missing, does not complete, does not end in time, or is one too many.
    pub(super) fn wait_for_ends(
        &self,
        cluster: &Cluster,
        dead: NodeId,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let client = cluster.client_of(|node_id| node_id != dead);
        wait_for("every run to end", LIMIT, interrupt, || {
            Ok((self.open_runs_count(&client)? == 0).then_some(()))
        })?;
        say(format!("all {} runs have completed", self.taken.len()));
        Ok(())
    }

    /// How many of the runs have not completed yet.
    ///
    /// # Errors
    /// As [`Self::wait_for_ends`], except for the time.
    pub(super) fn open_runs_count(&self, client: &Client<'_>) -> Result<usize> {
        let mut statuses = statuses(client)?;
        let mut open = 0;
        for Taken { order, run_id } in &self.taken {
            let status = statuses.remove(run_id);
            let status =
                status.with_context(|| format!("{run_id} of order {} is lost", order.id))?;
            match status.as_str() {
                "completed" => {}
                "pending" | "running" | "waiting" => open += 1,
                other => bail!("expected run {run_id} to complete, but it is {other}"),
            }
        }
        if let Some(run_id) = statuses.keys().next() {
            bail!("expected one run for each order, but {run_id} belongs to no order");
        }
        Ok(open)
    }

    fn to_approve(&self) -> impl Iterator<Item = &Taken> {
        let taken = self.taken.iter();
        taken.filter(|taken| taken.order.needs_approval())
    }

    /// Takes the orders through each node in turn.
    fn take_in_turn(&mut self, cluster: &Cluster, orders: &[Order]) -> Result<()> {
        let mut pairs = orders.iter().zip(cluster.node_ids().cycle());
        pairs.try_for_each(|(order, node_id)| self.take_through(cluster, node_id, *order))
    }

    fn take_through(&mut self, cluster: &Cluster, node_id: NodeId, order: Order) -> Result<()> {
        let started = start(&cluster.client_of(|known| known == node_id), &order)?;
        say(format!(
            "{:<8}  {order}, through node {node_id}",
            started.run_id
        ));
        self.note(order, started)
    }

    fn note(&mut self, order: Order, started: Started) -> Result<()> {
        let Started {
            run_id,
            is_existing,
        } = started;
        if is_existing {
            bail!(
                "expected a new run for order {}, but {run_id} exists",
                order.id
            );
        }
        self.taken.push(Taken { order, run_id });
        Ok(())
    }

    /// Sends the first order again, which must return the same run.
    fn repeat_first(&self, cluster: &Cluster) -> Result<()> {
        let [first, ..] = &self.taken[..] else {
            bail!("expected orders, but none was taken");
        };
        let again = start(&cluster.client(), &first.order)?;
        if !again.is_existing || again.run_id != first.run_id {
            bail!(
                "expected {} again, but started {}",
                first.run_id,
                again.run_id
            );
        }
        let id = first.order.id;
        say(format!(
            "{:<8}  order {id} sent again, with the same key: no second run",
            again.run_id
        ));
        Ok(())
    }
}
