//! The end of the demo: the histories of two runs, and the summary of all runs.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use super::Crash;
use super::chronicle::Chronicle;
use super::order::{ORDER_PROCESSING, PROCESS_ORDER};
use super::order_book::{OrderBook, Taken};
use crate::client::Client;
use crate::stages::{say, show_ms};
use crate::table::Table;

/// Every run with its history.
pub(super) struct Finale<'a> {
    runs: Vec<(&'a Taken, Chronicle)>,
}

impl<'a> Finale<'a> {
    /// Reads the histories.
    pub(super) fn gather(book: &'a OrderBook, client: &Client<'_>) -> Result<Self> {
        let runs = book.taken().iter().map(|taken| {
            let events = client.objects(&["workflow", "history", &taken.run_id])?;
            Ok((taken, Chronicle::read(&events)?))
        });
        Ok(Self {
            runs: runs.collect::<Result<_>>()?,
        })
    }

    /// Prints the history of the most eventful run of each workflow.
    pub(super) fn show_histories(&self) -> Result<()> {
        for workflow in [PROCESS_ORDER, ORDER_PROCESSING] {
            let runs = self.runs.iter().filter(|(taken, _)| taken.is_of(workflow));
            let (taken, chronicle) = runs
                .max_by_key(|(_, chronicle)| (chronicle.leaders().len(), chronicle.len()))
                .with_context(|| format!("expected a run of {workflow}, but found no run"))?;
            let Taken { order, run_id } = taken;
            println!("\n    {workflow}, run {run_id}, order {}\n", order.id);
            for line in chronicle.table().render() {
                say(line);
            }
        }
        Ok(())
    }

    /// Prints the summary.
    ///
    /// # Errors
    /// If an order was not charged, or there is a charge without an order.
    pub(super) fn show_summary(&self, crash: &Crash, receipts: &BTreeSet<String>) -> Result<()> {
        self.expect_receipts(receipts)?;
        let runs = self.runs.len();
        let survivors = self.runs.iter().filter(|(_, it)| it.leaders().len() > 1);
        let mut summary = Table::default();
        let mut line = |name: &str, text: String| summary.add([name.to_owned(), text]);
        // 0 lost: by now every order's run has ended as completed.
        line("runs", format!("{runs} started, {runs} completed, 0 lost"));
        let Crash {
            dead,
            successor,
            open_runs_count,
            gap,
        } = crash;
        let survivors = survivors.count();
        let continued = format!("{survivors} of them continued under the next leader");
        line(
            "open at the kill",
            format!("{open_runs_count}, {continued}"),
        );
        line(
            "leader",
            format!("node {dead} before, node {} after", successor.node_id),
        );
        let gap = show_ms(*gap);
        line(
            "without a leader",
            format!("{gap}, as seen by a client that retries"),
        );
        line("orders charged", format!("{}, each once", receipts.len()));
        println!();
        for line in summary.render() {
            say(line);
        }
        Ok(())
    }

    fn expect_receipts(&self, receipts: &BTreeSet<String>) -> Result<()> {
        let orders = self.runs.iter().map(|(taken, _)| taken.order.id.to_owned());
        let orders: BTreeSet<String> = orders.collect();
        if orders != *receipts {
            bail!("expected receipts for {orders:?}, but there are {receipts:?}");
        }
        Ok(())
    }
}
