//! Injects faults and heals them.

use crate::network::{Host, Network, Route, Weather};
use crate::node::Machine;
use crate::random::Random;
use crate::record::Record;
use crate::scenario::{Fault, Scenario};
use flotilla_engine::NodeId;
use flotilla_replica::{ClusterChange, Replica};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// How long a fault lasts, in milliseconds: from the scale of a heartbeat to well beyond an election.
const DURATION_MS: std::ops::Range<u64> = 30..4_000;
/// How long a write to the log hangs, in milliseconds: a leader hands over after 5 s.
const HANG_MS: std::ops::Range<u64> = 1_000..9_000;
/// The maximum pause between two faults, in milliseconds: some seeds are calm, others are not.
const QUIET_MS_MAX: [u64; 4] = [1_500, 3_000, 5_000, 10_000];
/// A voter that does not lead by then will not.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(1);

/// Injects faults, one or two at a time.
pub(crate) struct Faults {
    scenario: Scenario,
    random: Random,
    network: Network,
    record: Record,
    quiet_ms_max: u64,
    next_ms: u64,
    /// When the current fault of the network ends, in milliseconds.
    network_until_ms: Option<u64>,
    /// Machines without a process, and when they get one, in milliseconds.
    down: Vec<(Host, u64)>,
    slow: BTreeSet<Host>,
}

impl Faults {
    pub(crate) fn new(
        scenario: Scenario,
        mut random: Random,
        network: Network,
        record: Record,
    ) -> Self {
        Self {
            scenario,
            quiet_ms_max: *random.pick(&QUIET_MS_MAX),
            random,
            network,
            record,
            next_ms: 0,
            network_until_ms: None,
            down: Vec::new(),
            slow: BTreeSet::new(),
        }
    }

    /// Heals what has lasted long enough, and injects what is due.
    pub(crate) fn step(&mut self, now_ms: u64, machines: &mut [Machine]) {
        if self
            .network_until_ms
            .is_some_and(|until_ms| until_ms <= now_ms)
        {
            self.mend_network(self.scenario.weather());
        }
        self.collect_failed(now_ms, machines);
        let (due, down) = self
            .down
            .drain(..)
            .partition(|(_, due_ms)| *due_ms <= now_ms);
        self.down = down;
        for (host, _) in due {
            self.start(host, machines);
        }
        if now_ms >= self.next_ms {
            let fault = self.choose();
            self.inject(fault, now_ms, machines);
            self.next_ms = now_ms + self.random.within(50..self.quiet_ms_max);
        }
    }

    /// Heals everything.
    pub(crate) fn heal(&mut self, machines: &mut [Machine]) {
        self.record.fault("all faults are healed");
        self.mend_network(Weather::FAIR);
        for (host, _) in std::mem::take(&mut self.down) {
            self.start(host, machines);
        }
        for machine in machines {
            if machine.disk.has_failed() {
                machine.kill();
                machine.disk.cut_power(&mut self.random);
            }
            machine.disk.repair();
            machine.resume();
            machine.pace.slow_down(0);
            machine.pace.hang_once(0);
            machine.clock.jump(0);
            machine.start();
            undrain(machine);
        }
    }

    fn choose(&mut self) -> Fault {
        let faults = self.scenario.faults();
        let total = faults.iter().map(|(_, weight)| weight).sum();
        let mut drawn = self.random.within(0..total);
        for (fault, weight) in faults {
            if drawn < *weight {
                return *fault;
            }
            drawn -= weight;
        }
        unreachable!("what is drawn is below the sum of the weights");
    }

    fn inject(&mut self, fault: Fault, now_ms: u64, machines: &mut [Machine]) {
        let until_ms = now_ms + self.random.within(DURATION_MS);
        let count = machines.len() as u64;
        let position = self.random.within(0..count);
        let position = usize::try_from(position).expect("a position within a slice");
        let host = machines[position].host;
        self.record
            .fault(&format!("{fault:?} at {host} until {until_ms}"));
        let others: Vec<Host> = hosts(machines).filter(|other| *other != host).collect();
        let machine = &mut machines[position];
        match fault {
            Fault::Isolate => self.cut(others.iter().flat_map(|o| both(host, *o)), until_ms),
            Fault::OneWay => {
                let other = *self.random.pick(&others);
                let route = *self.random.pick(&both(host, other));
                self.cut([route], until_ms);
            }
            Fault::Bridge => self.cut(both(others[0], others[1]), until_ms),
            Fault::BadWeather => {
                let weather = *self.random.pick(&[Weather::SLOW, Weather::LOSSY]);
                self.network.set_weather(weather);
                self.network_until_ms = Some(until_ms);
            }
            Fault::Kill => self.take_down(machine, until_ms),
            Fault::PowerCut => self.cut_power(machine, until_ms),
            Fault::PowerCutOfAll => {
                for machine in machines {
                    self.cut_power(machine, until_ms);
                }
            }
            Fault::TornWrite => machine.disk.fail_soon(&mut self.random),
            Fault::Stop => machine.stop_until(until_ms),
            Fault::ClockJump => {
                let jump_ms = self.random.within(0..40_000);
                let jump_ms = i64::try_from(jump_ms).expect("a small number") - 20_000;
                machine.clock.jump(jump_ms);
            }
            Fault::SlowMachine => self.change_speed(machine),
            Fault::HangingDisk => machine.pace.hang_once(self.random.within(HANG_MS)),
            Fault::Transfer => transfer(machines, self.random.pick(&others)),
            Fault::Drain => drain(machines, host, until_ms - now_ms),
            Fault::Shutdown => {
                if let Some(replica) = machine.replica().cloned() {
                    machine.spawn(async move { replica.shutdown().await });
                }
                // It gets time to stop gracefully; then it is gone.
                self.down.push((host, until_ms + 1_000));
            }
        }
    }

    fn cut(&mut self, routes: impl IntoIterator<Item = Route>, until_ms: u64) {
        self.network.cut(routes);
        self.network_until_ms = Some(until_ms);
    }

    fn mend_network(&mut self, weather: Weather) {
        self.record.fault("the network is healed");
        self.network.mend();
        self.network.set_weather(weather);
        self.network_until_ms = None;
    }

    fn take_down(&mut self, machine: &mut Machine, until_ms: u64) {
        machine.kill();
        self.down.push((machine.host, until_ms));
    }

    fn cut_power(&mut self, machine: &mut Machine, until_ms: u64) {
        self.take_down(machine, until_ms);
        let (log, state) = machine.disk.cut_power(&mut self.random);
        let host = machine.host;
        self.record.fault(&format!(
            "{host} loses {log} writes of the log, {state} of the state"
        ));
    }

    /// Machines whose power failed during a write are down; then they start again.
    fn collect_failed(&mut self, now_ms: u64, machines: &mut [Machine]) {
        for machine in machines {
            if machine.disk.has_failed() && machine.has_process() {
                let until_ms = now_ms + self.random.within(DURATION_MS);
                self.record
                    .fault(&format!("the write at {} is torn", machine.host));
                self.cut_power(machine, until_ms);
            }
        }
    }

    fn start(&mut self, host: Host, machines: &mut [Machine]) {
        let machine = machines.iter_mut().find(|machine| machine.host == host);
        let machine = machine.expect("a host is that of a machine");
        self.record.fault(&format!("{host} starts"));
        // After a shutdown the process still exists, without any work.
        machine.kill();
        machine.start();
    }

    fn change_speed(&mut self, machine: &Machine) {
        if self.slow.remove(&machine.host) {
            machine.pace.slow_down(0);
        } else {
            self.slow.insert(machine.host);
            machine.pace.slow_down(self.random.within(5..80));
        }
    }
}

/// A running node, and its replica.
fn running(machines: &[Machine]) -> Option<(&Machine, Replica)> {
    let mut running = machines.iter();
    running.find_map(|machine| Some((machine, machine.replica()?.clone())))
}

/// Asks a running node to transfer leadership.
fn transfer(machines: &[Machine], to: &Host) {
    let change = ClusterChange::TransferLeader {
        to: Some(NodeId(*to)),
    };
    if let Some((machine, replica)) = running(machines) {
        machine.spawn(async move {
            // Another fault may well come in between.
            let _ = replica
                .change(change, Instant::now() + TRANSFER_TIMEOUT)
                .await;
        });
    }
}

/// Drains a member through a running node, and ends that after a while. If that fails, a restart ends it, or the end of
/// all faults.
fn drain(machines: &[Machine], host: Host, drained_ms: u64) {
    let node_id = NodeId(host);
    let Some((machine, replica)) = running(machines) else {
        return;
    };
    machine.spawn(async move {
        let change = ClusterChange::DrainNode { node_id };
        let _ = replica
            .change(change, Instant::now() + TRANSFER_TIMEOUT)
            .await;
        tokio::time::sleep(Duration::from_millis(drained_ms)).await;
        let change = ClusterChange::UndrainNode { node_id };
        let _ = replica
            .change(change, Instant::now() + TRANSFER_TIMEOUT)
            .await;
    });
}

/// Ends the drain of a member.
fn undrain(machine: &Machine) {
    let change = ClusterChange::UndrainNode {
        node_id: NodeId(machine.host),
    };
    if let Some(replica) = machine.replica().cloned() {
        machine.spawn(async move {
            let ended = replica.change(change, Instant::now() + TRANSFER_TIMEOUT);
            // It fails only if the process is starting, which ends the drain as well.
            let _ = ended.await;
        });
    }
}

fn hosts(machines: &[Machine]) -> impl Iterator<Item = Host> + '_ {
    machines.iter().map(|machine| machine.host)
}

fn both(one: Host, other: Host) -> [Route; 2] {
    let route = Route {
        from: one,
        to: other,
    };
    [route, route.back()]
}
