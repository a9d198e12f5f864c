//! The simulation: machines, network and outside callers, one millisecond at a time.

mod restored;

use crate::bug::Bug;
use crate::cluster::Cluster;
use crate::faults::Faults;
use crate::invariants::{self, Evidence};
use crate::network::{Host, Network, OUTSIDE};
use crate::node::{Machine, MachineContext, simulated_runtime};
use crate::outside::{Caller, Client, CredentialOwner, Load, Worker, operate};
use crate::random::Random;
use crate::record::{Progress, Record};
use crate::scenario::Scenario;
use crate::time::Time;
use flotilla_engine::Actor;
use flotilla_engine::store::{KeyRange, MemoryStore, Order, Reader, Writes};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::runtime::Runtime;

const HOSTS: [Host; 3] = [1, 2, 3];
/// How long all work in progress may take to end once all faults are healed, in milliseconds.
const LIVENESS_MS_MAX: u64 = 90_000;
/// How long every node may take to serve again, in milliseconds.
const SERVICE_MS_MAX: u64 = 10_000;
/// How often to check whether everything has ended, in milliseconds.
const LOOK_INTERVAL_MS: u64 = 250;
/// The first key of the replica's rows that belong to the node alone.
const LOCAL_ROWS: u8 = 0xF2;

/// What is simulated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) scenario: Scenario,
    /// How long faults are injected, in simulated seconds.
    pub(crate) seconds: u64,
    pub(crate) bug: Option<Bug>,
}

/// The result of a simulation.
pub(crate) struct Verdict {
    /// The violated invariants; empty if all held.
    pub(crate) violations: Vec<String>,
    pub(crate) trace: String,
    pub(crate) operations_count: usize,
    pub(crate) faults_count: u64,
    pub(crate) entries_count: u64,
    /// Snapshots made, and installed from others.
    pub(crate) snapshots: (u64, u64),
    pub(crate) simulated_ms: u64,
}

/// The simulation of one seed.
struct World {
    time: Time,
    network: Network,
    record: Record,
    machines: Vec<Machine>,
    outside: Runtime,
    faults: Faults,
    /// The order in which the machines get their millisecond.
    turns: Random,
    seen: BTreeMap<Host, u64>,
}

/// Simulates a plan from its start to its verdict.
pub(crate) fn simulate(plan: Plan) -> Verdict {
    match plan.scenario {
        Scenario::Mixed | Scenario::Snapshots | Scenario::Far | Scenario::Drained => {
            simulate_faults(plan)
        }
        Scenario::Restored => restored::simulate(plan),
    }
}

fn simulate_faults(plan: Plan) -> Verdict {
    let mut world = World::new(plan);
    world.begin(plan);
    let mut violations = Vec::new();
    while world.time.now_ms() < plan.seconds * 1_000 {
        let now_ms = world.time.now_ms();
        world.faults.step(now_ms, &mut world.machines);
        world.step();
    }
    world.faults.heal(&mut world.machines);
    violations.extend(world.run_until_idle());
    let evidence = world.evidence();
    violations.extend(invariants::check(&world.record.events(), &evidence));
    world.verdict(violations)
}

impl World {
    fn new(plan: Plan) -> Self {
        let time = Time::default();
        let record = Record::new(time.clone());
        let network = Network::new(time.clone(), Random::of(plan.seed, "network"));
        let context = MachineContext {
            seed: plan.seed,
            time: time.clone(),
            network: network.clone(),
            record: record.clone(),
            tuning: plan.scenario.tuning(),
            hosts: HOSTS.to_vec(),
            cluster: Cluster::Old,
            has_workers: plan.scenario == Scenario::Restored,
            bug: plan.bug,
        };
        let machine = |host| Machine::new(host, context.clone());
        let chance = Random::of(plan.seed, "faults");
        Self {
            machines: HOSTS.into_iter().map(machine).collect(),
            faults: Faults::new(plan.scenario, chance, network.clone(), record.clone()),
            outside: simulated_runtime(),
            turns: Random::of(plan.seed, "turns"),
            seen: BTreeMap::new(),
            time,
            network,
            record,
        }
    }

    /// A caller outside the cluster.
    fn caller(&self, plan: Plan, name: String) -> Caller {
        Caller {
            network: self.network.clone(),
            record: self.record.clone(),
            random: Random::of(plan.seed, &name),
            hosts: HOSTS.to_vec(),
            actor: Actor::Anonymous,
            name,
        }
    }

    /// The verdict, once the simulation is over.
    fn verdict(&self, violations: Vec<String>) -> Verdict {
        let events = self.record.events();
        let indexes = events.progress.iter().map(|seen| seen.index);
        let verdict = Verdict {
            violations,
            operations_count: events.operations.len(),
            faults_count: events.faults_count,
            snapshots: self.snapshots(),
            entries_count: indexes.max().unwrap_or(0),
            simulated_ms: self.time.now_ms(),
            trace: String::new(),
        };
        drop(events);
        let trace = self.record.trace();
        Verdict { trace, ..verdict }
    }

    /// Starts the machines and all outside callers.
    fn begin(&mut self, plan: Plan) {
        self.network.set_weather(plan.scenario.weather());
        for machine in &mut self.machines {
            machine.start();
        }
        let load: Load = plan.scenario.load();
        let operator = self.caller(plan, "operator".to_owned());
        let until_ms = plan.seconds * 1_000;
        self.outside
            .spawn(operate(operator, self.time.clone(), until_ms, plan.bug));
        for number in 1..=load.workers {
            let caller = self.caller(plan, format!("worker {number}"));
            self.outside.spawn(Worker::new(caller).run());
        }
        for number in 1..=load.clients {
            let client = Client {
                caller: self.caller(plan, format!("client {number}")),
                time: self.time.clone(),
                load,
                until_ms,
                orders: Vec::new(),
                begun: Vec::new(),
                trips: Vec::new(),
                requested_count: 0,
            };
            self.outside.spawn(client.run());
        }
        let owner = CredentialOwner {
            caller: self.caller(plan, "token owner".to_owned()),
            time: self.time.clone(),
            until_ms,
        };
        self.outside.spawn(owner.run());
    }

    /// Lets a millisecond pass for everything.
    fn step(&mut self) {
        self.network.deliver();
        let mut turns: Vec<Host> = HOSTS.into_iter().chain([OUTSIDE]).collect();
        self.turns.shuffle(&mut turns);
        for host in turns {
            if host == OUTSIDE {
                self.outside
                    .block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
            } else if let Some(machine) = self.machines.iter_mut().find(|m| m.host == host) {
                machine.step();
            }
        }
        self.observe();
        self.time.tick();
    }

    /// Records how far each node has applied, and whether it has stopped.
    fn observe(&mut self) {
        for machine in self.machines.iter().filter(|machine| machine.is_running()) {
            if let Some(failure) = machine.failure()
                && !machine.disk.has_failed()
            {
                self.record
                    .fail(format!("node {}: {failure}", machine.host));
            }
            let Some(replica) = machine.replica() else {
                continue;
            };
            let (index, digest) = replica.applied_position();
            if self.seen.insert(machine.host, index) == Some(index) {
                continue;
            }
            let log = replica.view(|view| (view.index(), view.now_ms()));
            let log_ms = log
                .ok()
                .filter(|(seen, _)| *seen == index)
                .map(|(_, now_ms)| now_ms);
            self.record.applied(Progress {
                host: machine.host,
                index,
                digest,
                log_ms,
            });
        }
    }

    /// Continues without faults until all work in progress has ended and all nodes agree.
    fn run_until_idle(&mut self) -> Vec<String> {
        let healed_ms = self.time.now_ms();
        let mut served_ms = None;
        while self.time.now_ms() < healed_ms + LIVENESS_MS_MAX {
            for _ in 0..LOOK_INTERVAL_MS {
                self.step();
            }
            if served_ms.is_none() && invariants::progress::all_serve(&self.machines) {
                served_ms = Some(self.time.now_ms() - healed_ms);
            }
            if !self.record.events().failures.is_empty() {
                return Vec::new();
            }
            let is_answered = invariants::progress::all_answered(&self.record.events());
            if is_answered && invariants::progress::all_ended(&self.machines) {
                break;
            }
        }
        invariants::progress::judge(&self.machines, served_ms, SERVICE_MS_MAX)
    }

    /// How many snapshots were made, and how many installed.
    fn snapshots(&self) -> (u64, u64) {
        let counts = self.machines.iter().map(|machine| machine.disk.snapshots());
        counts.fold((0, 0), |(made, installed), (more, others)| {
            (made + more, installed + others)
        })
    }

    /// The final state of each node.
    fn evidence(&self) -> Evidence {
        let kept = |machine: &Machine| {
            let replica = machine.replica()?;
            let rows = replica.view(|view| copy(view)).ok()?;
            Some((machine.host, (replica.applied_position(), rows)))
        };
        Evidence {
            nodes: self.machines.iter().filter_map(kept).collect(),
        }
    }
}

/// All rows that a node shares with the others.
fn copy(reader: &dyn Reader) -> MemoryStore {
    let mut writes = Writes::new();
    let shared = KeyRange {
        from: Vec::new(),
        to: vec![LOCAL_ROWS],
    };
    reader
        .scan(&shared, Order::Ascending, &mut |key, value| {
            writes.put(key, value);
            ControlFlow::Continue(())
        })
        .expect("memory does not fail");
    let mut rows = MemoryStore::default();
    rows.write(&writes);
    rows
}
