//! A cluster loses its quorum and is replaced by another one at the same addresses; then a member of the old cluster
//! reaches the new one (R-H1).
//!
//! The old member must neither serve a read nor get a command through, and nothing of it may arrive in the new cluster.
//! It ends once the new cluster has the addresses of a majority. The members of both clusters have workers, and neither
//! cluster sees a worker stream, a task or a completion of the other.

use super::{HOSTS, Plan, Verdict, World};
use crate::cluster::{Cluster, Member};
use crate::invariants::clusters;
use crate::network::{Host, OUTSIDE, Route};
use crate::node::{Machine, Submitted, registration};
use crate::outside::{Caller, invoke, key, set};
use crate::random::Random;
use crate::time::Time;
use flotilla_engine::ids::Namespace;
use flotilla_engine::{Actor, Body, SetCondition, view};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The member of the old cluster that stays.
const OLD: Host = 2;
/// The members whose machines have a new cluster afterwards: a minority of the old members, or a majority.
const NEW: [&[Host]; 2] = [&[1], &[1, 3]];
/// How long the old member does not reach the new cluster, in milliseconds.
const APART_MS: Range<u64> = 500..6_000;
/// How long the old member may take to end, in milliseconds.
const END_MS_MAX: u64 = 15_000;

/// A call of a client that was served.
struct Call {
    via: Host,
    invoked_ms: u64,
    kind: &'static str,
}

/// The calls of all clients that were served.
type SharedLog = Arc<Mutex<Vec<Call>>>;

/// Simulates the plan's seed.
pub(super) fn simulate(plan: Plan) -> Verdict {
    let mut world = World::new(plan);
    let mut random = Random::of(plan.seed, "restored");
    world.network.set_weather(plan.scenario.weather());
    for machine in &mut world.machines {
        machine.start();
    }
    let log = SharedLog::default();
    for host in HOSTS {
        let caller = world.caller(plan, format!("client {host}"));
        let client = run_client(caller, host, world.time.clone(), Arc::clone(&log));
        world.outside.spawn(client);
    }
    world.run_for(plan.seconds * 1_000 / 2);
    let lost_ms = world.time.now_ms();
    let members = *random.pick(&NEW);
    world.replace_cluster(members);
    world.run_for(random.within(APART_MS));
    world.register_old_worker(plan, members);
    world.record.fault("the old member reaches the new cluster");
    world.network.mend();
    let met_ms = world.time.now_ms();
    world.run_for(plan.seconds * 1_000 / 2 + END_MS_MAX);
    let violations = world.judge_replacement(members, &log, lost_ms..met_ms);
    world.verdict(violations)
}

impl World {
    /// Lets some milliseconds pass.
    fn run_for(&mut self, ms: u64) {
        for _ in 0..ms {
            self.step();
        }
    }

    /// All but the old member are gone. The machines of some have a new cluster, which it does not reach.
    fn replace_cluster(&mut self, members: &[Host]) {
        self.record
            .fault(&format!("a new cluster replaces the members {members:?}"));
        for machine in self.machines.iter_mut().filter(|one| one.host != OLD) {
            let host = machine.host;
            machine.kill();
            let route = Route {
                from: OLD,
                to: host,
            };
            self.network.cut([route, route.back()]);
            if members.contains(&host) {
                *machine = machine.replaced(members);
                machine.start();
            }
        }
    }

    /// Registers the worker of the old member in the new cluster, as a backup of the old cluster would.
    fn register_old_worker(&self, plan: Plan, members: &[Host]) {
        let mut caller = self.caller(plan, "operator".to_owned());
        (caller.hosts, caller.actor) = (members.to_vec(), Actor::System);
        let member = Member {
            host: OLD,
            cluster: Cluster::Old,
        };
        let command = caller.command(registration(plan.seed, member));
        self.outside.spawn(async move {
            caller.insist(command).await;
        });
    }

    /// The violations. The new cluster replaced the old one at the start of the range, and the old member reached it at
    /// its end.
    fn judge_replacement(
        &self,
        members: &[Host],
        log: &SharedLog,
        apart_ms: Range<u64>,
    ) -> Vec<String> {
        let log = lock(log);
        let served = log.iter().filter(|call| call.via == OLD);
        let served = served.filter(|call| call.invoked_ms >= apart_ms.start);
        let mut violations: Vec<String> = served
            .map(|Call { kind, invoked_ms, .. }| {
                format!("expected the old member to serve nothing, but it served a {kind} at {invoked_ms}")
            })
            .collect();
        let is_working =
            |call: &Call| members.contains(&call.via) && call.invoked_ms > apart_ms.end;
        if !log.iter().any(is_working) {
            violations.push("expected the new cluster to serve, but it does not".to_owned());
        }
        for machine in &self.machines {
            violations.extend(judge_machine(machine, members));
        }
        let events = self.record.events();
        violations.extend(clusters::check(&events));
        let mut completed = events.member_completed.iter();
        if !completed.any(|(_, member)| member.cluster == Cluster::New) {
            violations
                .push("expected the new cluster to work on tasks, but it does not".to_owned());
        }
        violations
    }
}

/// The violations that one machine shows at the end.
fn judge_machine(machine: &Machine, members: &[Host]) -> Vec<String> {
    let host = machine.host;
    let failure = machine.failure();
    if host == OLD {
        let is_outnumbered = members.len() > HOSTS.len() / 2;
        let is_right = failure.is_some() == is_outnumbered;
        let text = format!(
            "expected the old member to end if the new cluster {members:?} has the addresses of a majority, but: {failure:?}"
        );
        return if is_right { Vec::new() } else { vec![text] };
    }
    let mut violations = Vec::new();
    if let Some(failure) = failure {
        violations.push(format!("expected node {host} to serve, but: {failure}"));
    }
    let namespace = Namespace::default_namespace();
    let foreign = machine.replica().and_then(|replica| {
        let read = replica.view(|view| view::key(view, &namespace, &key(OLD), view.now_ms()));
        read.ok()?.ok()?
    });
    if let Some(foreign) = foreign {
        violations.push(format!(
            "expected nothing of the old member in the new cluster, but node {host} has {foreign:?}"
        ));
    }
    violations
}

/// Writes, invokes an action and reads through one node.
async fn run_client(mut caller: Caller, via: Host, time: Time, log: SharedLog) {
    let route = Route {
        from: OUTSIDE,
        to: via,
    };
    for number in 0_u64.. {
        let invoked_ms = time.now_ms();
        let kind = match caller.random.within(0..4) {
            0 => {
                let body = set(&key(via), &number.to_string(), SetCondition::Always);
                submit(&mut caller, route, body).await.then_some("write")
            }
            1 => {
                let body = invoke(&format!("{via} {number}"));
                let is_served = submit(&mut caller, route, body).await;
                is_served.then_some("invocation")
            }
            _ => {
                let requested = key(*caller.random.pick(&HOSTS));
                let read = caller.read_at(route, &requested).await;
                read.is_ok().then_some("read")
            }
        };
        if let Some(kind) = kind {
            caller
                .record
                .say(&caller.name, &format!("was served a {kind}"));
            lock(&log).push(Call {
                via,
                invoked_ms,
                kind,
            });
        }
        caller.pause(1..100).await;
    }
}

/// Submits a command through a node once. Returns whether it was carried out.
async fn submit(caller: &mut Caller, route: Route, body: Body) -> bool {
    let command = caller.command(body);
    let submitted = caller.attempt_at(route, &command).await;
    matches!(submitted, Submitted::Answered(Ok(_)))
}

fn lock(log: &SharedLog) -> MutexGuard<'_, Vec<Call>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}
