//! Attacks on a cluster that serves honest clients: by strangers, by overload, by a half-dead neighbor.
//!
//! Each runs once, against its own cluster. The figures of the honest clients during the attack are compared with their
//! figures right before it, in the same run: the machine may be busy with other work.

mod arena;
mod bench;
mod connections;
mod faults;
mod freezing_disk;
mod load;
mod memory;
mod memory_group;
mod modules;
mod requests;
mod responses;
mod result;

pub use load::Served;
pub use memory_group::MemoryLimit;
pub use result::{AttackResult, table};

use arena::Arena;
use bench::{Bench, Period};
use load::{Load, LoadKind};
use result::{BenchRates, Measured};
use std::time::Duration;

/// How long the honest clients work before they are measured.
const WARM_UP: Duration = Duration::from_secs(3);
/// How long `flo bench` runs beyond the warm-up and the two measured periods.
const BENCH_MARGIN: Duration = Duration::from_secs(12);
/// How long the honest clients may take to be as fast as before, once the attack is over.
const RECOVERY_MAX: Duration = Duration::from_secs(30);

/// What an attack needs, and what it may cause.
pub(crate) struct Needs {
    /// Flags of each node.
    pub(crate) flags: &'static [&'static str],
    /// The memory that each node is given, in bytes.
    pub(crate) memory_bytes: u64,
    /// Whether a control group limits it, if the machine allows that. The nodes have to find that out.
    pub(crate) has_memory_groups: bool,
    /// Whether nodes and clients use TLS.
    pub(crate) is_secured: bool,
    /// The limit of open files of each node, if it is not the machine's.
    pub(crate) open_files: Option<u64>,
    /// Whether each node has a disk that can hang.
    pub(crate) has_freezing_disks: bool,
    /// Whether the attack stops the leader: another node may lead, and its probes may fail.
    pub(crate) hits_leader: bool,
    /// How busy the honest clients are.
    pub(crate) load: LoadKind,
    /// By how much the priority of the attackers' threads is lower than that of the nodes and the honest clients.
    pub(crate) attackers_nice: i32,
    /// The least throughput of the honest clients during the attack, in percent of their throughput before it.
    pub(crate) throughput_min: u64,
}

impl Default for Needs {
    fn default() -> Self {
        Self {
            flags: &[],
            memory_bytes: 1 << 30,
            has_memory_groups: false,
            is_secured: false,
            open_files: None,
            has_freezing_disks: false,
            hits_leader: false,
            load: LoadKind::Busy,
            attackers_nice: 0,
            throughput_min: 50,
        }
    }
}

impl Needs {
    /// Of an attack that stops the leader. How much the honest clients get done meanwhile is not judged.
    pub(crate) fn of_leader() -> Self {
        Self {
            hits_leader: true,
            throughput_min: 0,
            ..Self::default()
        }
    }
}

/// An attack.
pub trait Abuse {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it needs, and what it may cause.
    #[expect(private_interfaces, reason = "only this module runs attacks")]
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Stores what the attack uses, before the honest clients are measured.
    #[expect(private_interfaces, reason = "only this module runs attacks")]
    fn prepare(&mut self, _arena: &mut Arena) {}

    /// Begins the attack, and says what it is.
    #[expect(private_interfaces, reason = "only this module runs attacks")]
    fn begin(&mut self, arena: &mut Arena) -> String;

    /// Why the attack was too weak to show anything, if it was; `attacked` is what the honest clients measured during the attack.
    fn shortfall(&self, _attacked: &Served) -> Option<String> {
        None
    }

    /// Ends what is not a task of the arena.
    #[expect(private_interfaces, reason = "only this module runs attacks")]
    fn end(&mut self, _arena: &mut Arena) {}
}

/// Every attack.
#[must_use]
pub fn all() -> Vec<Box<dyn Abuse>> {
    vec![
        Box::new(connections::Slowloris),
        Box::new(connections::IdleConnections),
        Box::new(connections::HandshakeFlood),
        Box::new(connections::ExhaustedFiles),
        Box::new(requests::Stalled::BODIES),
        Box::new(requests::Stalled::STREAMS),
        Box::<requests::LargeRequests>::default(),
        Box::new(requests::NoisyNamespace::default()),
        Box::new(requests::Watchers::default()),
        Box::new(responses::UnreadResponses::LARGE),
        Box::new(responses::UnreadResponses::SMALL),
        Box::new(modules::PoisonousModule::default()),
        Box::new(modules::HungryGuests),
        Box::new(faults::HungDisk::default()),
        Box::new(faults::HalfOpenInstall::default()),
    ]
}

/// The attacks with these names; `all` for every one.
///
/// # Errors
/// The unknown name, with the known ones.
pub fn named(names: &[String]) -> Result<Vec<Box<dyn Abuse>>, String> {
    if names.iter().any(|name| name == "all") {
        return Ok(all());
    }
    let named = |name: &String| {
        let found = all().into_iter().find(|abuse| abuse.name() == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = all().iter().map(|abuse| abuse.name()).collect();
            format!("expected attacks of {known:?}, but got `{name}`")
        })
    };
    names.iter().map(named).collect()
}

/// Runs an attack. Measures the honest clients before and during it, for `window` each; quiet clients for four times that.
///
/// # Panics
/// When the cluster does not come up.
#[must_use]
pub fn run(abuse: &mut dyn Abuse, window: Duration) -> AttackResult {
    let needs = abuse.needs();
    let window = needs.load.window(window);
    let mut arena = Arena::set(&needs);
    abuse.prepare(&mut arena);
    let is_busy = needs.load == LoadKind::Busy;
    let bench = is_busy.then(|| Bench::start(&arena, WARM_UP + 2 * window + BENCH_MARGIN));
    let load = Load::start(&arena, needs.load);
    arena.pass(WARM_UP);
    let (calm_period, calm) = Period::of(|| load.measure(&arena, window));
    arena.reset_peaks();
    let term = arena.term();
    let what = abuse.begin(&mut arena);
    let (attacked_period, attacked) = Period::of(|| load.measure(&arena, window));
    abuse.end(&mut arena);
    arena.end_attack();
    // `flo bench` still runs, as it did in the calm period.
    let recovery = load.await_recovery(&arena, &calm, RECOVERY_MAX);
    let periods = [calm_period, attacked_period];
    let bench_rates = bench.map(|bench| BenchRates::of(bench.end().as_ref(), periods));
    let shortfall = abuse.shortfall(&attacked);
    let measured = Measured {
        name: abuse.name(),
        what,
        peaks: arena.peaks(),
        memory_limit: arena.memory_limit(),
        oom_kills: arena.oom_kills(),
        leader_changes: arena.term().saturating_sub(term),
        calm,
        attacked,
        bench: bench_rates,
        shortfall,
        recovery,
        ended: arena.ended(),
    };
    load.end(&arena);
    AttackResult::of(measured, &needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_lists_each_attack() {
        let readme = include_str!("../../README.md");
        for abuse in all() {
            let row = format!("| `{}` |", abuse.name());
            assert!(readme.contains(&row), "{row}");
        }
    }

    #[test]
    fn an_unknown_attack_is_refused_with_the_known_ones() {
        let refused = named(&["flood".to_owned()]).err().unwrap_or_default();
        assert!(refused.contains("slowloris"), "{refused}");
    }
}
