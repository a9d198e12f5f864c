//! The network between machines: messages arrive late, in another order, twice or never.
//!
//! A message is a job that is due at a time; [`Network::deliver`] does it on the machine to which
//! it is sent. Calls are single messages with independent fates. Streams are connections: they keep the order
//! while they last, and a lost message ends them after a silence, as with TCP.

mod call;
mod peer;
mod stream;
mod weather;

pub(crate) use call::CallError;
pub(crate) use peer::{SimulatedTransport, peer_address};
pub(crate) use stream::Open;
pub(crate) use weather::Weather;

use crate::node::Gateway;
use crate::random::Random;
use crate::time::Time;
use flotilla_replica::PeerCalls;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::runtime::Handle;

/// A machine's number: that of its node, or [`OUTSIDE`].
pub(crate) type Host = u64;

/// The machine of clients and workers.
pub(crate) const OUTSIDE: Host = 0;

/// A direction from one machine to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route {
    pub(crate) from: Host,
    pub(crate) to: Host,
}

impl Route {
    /// The opposite direction.
    pub(crate) fn back(self) -> Self {
        Self {
            from: self.to,
            to: self.from,
        }
    }
}

/// A process that can be reached.
#[derive(Clone)]
pub(crate) struct Process {
    /// The runtime of its tasks.
    pub(crate) handle: Handle,
    /// Its handler for peers.
    pub(crate) peer: Arc<dyn PeerCalls>,
    /// Its handler for clients and workers, once it serves them.
    pub(crate) gateway: Option<Arc<Gateway>>,
}

type Delivery = Box<dyn FnOnce() + Send>;

/// The network; clones share it.
#[derive(Clone)]
pub(crate) struct Network {
    time: Time,
    state: Arc<Mutex<State>>,
}

struct State {
    random: Random,
    weather: Weather,
    /// Directions in which nothing arrives.
    cuts: BTreeSet<Route>,
    processes: BTreeMap<Host, Process>,
    /// By time in milliseconds, and by the order in which they were sent.
    due: BTreeMap<(u64, u64), Delivery>,
    sent_count: u64,
}

impl Network {
    pub(crate) fn new(time: Time, random: Random) -> Self {
        Self {
            time,
            state: Arc::new(Mutex::new(State {
                random,
                weather: Weather::FAIR,
                cuts: BTreeSet::new(),
                processes: BTreeMap::new(),
                due: BTreeMap::new(),
                sent_count: 0,
            })),
        }
    }

    /// Sets the conditions of the network from now on.
    pub(crate) fn set_weather(&self, weather: Weather) {
        self.state().weather = weather;
    }

    /// Nothing that is sent in these directions arrives.
    pub(crate) fn cut(&self, routes: impl IntoIterator<Item = Route>) {
        self.state().cuts.extend(routes);
    }

    /// All directions are open again.
    pub(crate) fn mend(&self) {
        self.state().cuts.clear();
    }

    /// A process serves its peers.
    pub(crate) fn attach(&self, host: Host, process: Process) {
        let before = self.state().processes.insert(host, process);
        // Outside the lock: a drop may send.
        drop(before);
    }

    /// A process serves clients too.
    pub(crate) fn serve(&self, host: Host, gateway: Arc<Gateway>) {
        if let Some(process) = self.state().processes.get_mut(&host) {
            process.gateway = Some(gateway);
        }
    }

    /// A process is gone.
    pub(crate) fn detach(&self, host: Host) {
        let gone = self.state().processes.remove(&host);
        drop(gone);
    }

    /// The process of a machine, if one serves there.
    fn process(&self, host: Host) -> Option<Process> {
        self.state().processes.get(&host).cloned()
    }

    /// Does the jobs that are due.
    pub(crate) fn deliver(&self) {
        let now_ms = self.time.now_ms();
        loop {
            let mut state = self.state();
            match state.due.first_key_value() {
                Some(((due_ms, _), _)) if *due_ms <= now_ms => {}
                Some(_) | None => return,
            }
            let delivery = state.due.pop_first();
            drop(state);
            if let Some((_, delivery)) = delivery {
                delivery();
            }
        }
    }

    /// Schedules a job at a time.
    fn at(&self, due_ms: u64, delivery: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        state.sent_count += 1;
        let key = (due_ms, state.sent_count);
        state.due.insert(key, Box::new(delivery));
    }

    /// When a message that is sent now arrives; `None` for never.
    fn arrival_ms(&self, route: Route) -> Option<u64> {
        let state = &mut *self.state();
        let delay_ms = state.weather.delay_ms(&mut state.random);
        let is_lost = state.weather.loses(&mut state.random) || state.cuts.contains(&route);
        (!is_lost).then(|| self.time.now_ms() + delay_ms)
    }

    /// When a message that is sent now arrives a second time, if it does.
    fn echo_ms(&self) -> Option<u64> {
        let state = &mut *self.state();
        let echo_ms = state.weather.echo_ms(&mut state.random)?;
        Some(self.time.now_ms() + echo_ms)
    }

    /// When a receiver that gets no further messages notices it.
    fn silence_ms(&self) -> u64 {
        let state = &mut *self.state();
        self.time.now_ms() + state.random.within(20..3_000)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
