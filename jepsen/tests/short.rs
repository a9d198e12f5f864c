//! Short runs of a few nemeses and of a drill with all workloads; `cargo xtask jepsen` runs longer ones.

use flotilla_jepsen::drill;
use flotilla_jepsen::history::Outcome;
use flotilla_jepsen::nemesis::{self, Nemesis};
use flotilla_jepsen::run::{Pace, Plan, run};
use flotilla_jepsen::workload;
use std::env;
use std::time::Duration;

/// Killed leaders, partitioned leaders, bad links: the most frequent faults.
const NEMESES: [&str; 3] = ["kill-leader", "partition-leader", "lossy-links"];

#[test]
fn nothing_acknowledged_is_lost_and_nothing_happens_twice() {
    let (seed, pace) = (seed(), Pace::storm(Duration::from_secs(12)));
    for name in NEMESES {
        let nemesis = nemesis::named(name).expect("a nemesis of the README");
        let report = run(plan(nemesis, seed, pace));
        println!("{report}");
        assert!(report.is_sound(), "FLOTILLA_SEED={seed} repeats the faults");
    }
}

/// The other drills take long; `cargo xtask drill` runs all of them.
#[test]
fn while_each_node_leads_in_turn_no_call_fails_and_nothing_is_lost() {
    let seed = seed();
    let drill = drill::named("transfer-leader").expect("a drill of the README");
    let report = run(plan(drill, seed, Pace::drill()));
    println!("{report}");
    assert!(report.is_sound(), "FLOTILLA_SEED={seed} repeats it");
    assert_eq!(report.count(Outcome::Fail), 0);
    assert_eq!(report.count(Outcome::Unknown), 0);
}

fn seed() -> u64 {
    let given = env::var("FLOTILLA_SEED").ok();
    given.map_or_else(rand::random, |text| text.parse().expect("a number"))
}

fn plan(nemesis: Box<dyn Nemesis>, seed: u64, pace: Pace) -> Plan {
    let name = format!("flotilla-jepsen-{seed}-{}", nemesis.name());
    Plan {
        workloads: workload::all(),
        nemesis,
        seed,
        pace,
        // Other tests load the machine; the long run requires service within 10 s.
        recovery_max: Duration::from_secs(60),
        bug: None,
        folder: env::temp_dir().join(name),
        keep: false,
    }
}
