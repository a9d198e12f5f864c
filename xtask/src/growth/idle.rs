//! What nodes use that have nothing to do.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

use super::bench::Bench;
use super::section::Section;
use super::show::fine;
use crate::cluster::{Cluster, NodeId};
use crate::stages::say;
use crate::table::Table;
use crate::wait::let_pass;

/// Ticks of the processor's time in a second, as Linux shows it on every machine.
const TICKS_PER_SECOND: f64 = 100.0;

/// What a node may use, in percent of a core.
const PERCENT_MAX: f64 = 2.0;

/// What a node used.
#[derive(Debug)]
struct Use {
    node_id: NodeId,
    is_leader: bool,
    /// Of one core.
    percent: f64,
}

/// Measures an idle cluster.
///
/// # Errors
/// If it does not start, or a node ends.
pub(super) fn measure(bench: &Bench<'_>) -> Result<Section> {
    let interrupt = bench.interrupt();
    let mut cluster = bench.start()?;
    cluster.wait_for_agreement(interrupt)?;
    let leader = cluster.wait_for_leader(None, interrupt)?.node_id;
    // What the start and our questions have cost is not to count.
    let_pass(Duration::from_secs(bench.options.warm_up.into()), interrupt)?;

    let seconds = Duration::from_secs(bench.options.seconds.into());
    let before = ticks(&cluster)?;
    let passed = let_pass(seconds, interrupt)?;
    let after = ticks(&cluster)?;
    cluster.stop(interrupt)?;

    let nodes = before.into_iter().zip(after);
    let uses = nodes.map(|((node_id, before), (_, after))| Use {
        node_id,
        is_leader: node_id == leader,
        percent: percent(after.saturating_sub(before), passed),
    });
    let uses: Vec<Use> = uses.collect();
    let told = uses.iter().map(|used| format!("{:.2} %", used.percent));
    say(format!(
        "of a core: {}",
        told.collect::<Vec<_>>().join(", ")
    ));
    let section = Section::default()
        .paragraph(format!(
            "The CPU time of each node's process over {} s, on a new cluster without workers, runs or calls.",
            bench.options.seconds
        ))
        .table(&table(&uses));
    Ok(section.paragraph(verdict(&uses)))
}

/// What each node has used since its start.
fn ticks(cluster: &Cluster) -> Result<Vec<(NodeId, u64)>> {
    let of_node = |node_id| {
        let path = format!("/proc/{}/stat", cluster.process(node_id).id());
        let stat = fs::read_to_string(&path);
        let stat = stat.with_context(|| format!("expected to read {path}, as on Linux"))?;
        let ticks = read_ticks(&stat).with_context(|| format!("expected times in {path}"))?;
        Ok((node_id, ticks))
    };
    cluster.node_ids().map(of_node).collect()
}

/// The times in user and kernel mode: fields 14 and 15, of which the second, in brackets, may hold anything.
fn read_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut times = rest.split_whitespace().skip(11);
    let user: u64 = times.next()?.parse().ok()?;
    let kernel: u64 = times.next()?.parse().ok()?;
    Some(user + kernel)
}

#[allow(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn percent(ticks: u64, passed: Duration) -> f64 {
    ticks as f64 / TICKS_PER_SECOND / passed.as_secs_f64() * 100.0
}

fn table(uses: &[Use]) -> Table {
    let mut table = Table::new(&["node", "role", "CPU, %"]);
    for used in uses {
        let role = if used.is_leader { "leader" } else { "follower" };
        let node = used.node_id.to_string();
        table.add([node, role.to_owned(), fine(used.percent)]);
    }
    table
}

fn verdict(uses: &[Use]) -> String {
    let is_met = uses.iter().all(|used| used.percent <= PERCENT_MAX);
    let is_met = if is_met { "is met" } else { "is missed" };
    format!("The target of at most {PERCENT_MAX} % of a core for each node {is_met}.")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_times_are_found_behind_any_name() {
        let stat = "4242 (flo) x) S 1 4242 4242 0 -1 4194560 2231 0 0 0 31 11 0 0 20 0 24 0 882";
        assert_eq!(read_ticks(stat), Some(42));
        assert_eq!(read_ticks("4242 (flo) S 1"), None);
        assert!((percent(42, Duration::from_secs(10)) - 4.2).abs() < 1e-9);
    }

    #[test]
    fn each_node_is_a_row_and_all_are_held_to_the_target() {
        let mut uses: Vec<Use> = (1..=3)
            .map(|node_id| Use {
                node_id,
                is_leader: node_id == 2,
                percent: 0.5,
            })
            .collect();
        expect![[r#"
            | node | role     | CPU, % |
            |-----:|----------|-------:|
            |    1 | follower |   0.50 |
            |    2 | leader   |   0.50 |
            |    3 | follower |   0.50 |"#]]
        .assert_eq(&table(&uses).markdown().join("\n"));
        assert!(verdict(&uses).ends_with("is met."));
        uses[2].percent = 2.1;
        assert!(verdict(&uses).ends_with("is missed."));
    }
}
