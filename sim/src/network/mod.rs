//! The network between machines: what is sent arrives late, in another order, twice or never.
//!
//! A message is a piece of work that is due at a time; [`Network::deliver`] does it on the machine that it
//! is for. Calls are single messages, each with a fate of its own. Streams are connections: in order
//! while they last, and a message that is lost ends them, as TCP would, after a silence.

mod call;
mod peer;
mod stream;
mod weather;

pub(crate) use call::CallError;
pub(crate) use peer::{SimulatedTransport, peer_address};
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

/// Where clients and workers are.
pub(crate) const OUTSIDE: Host = 0;

/// From where to where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route {
    pub(crate) from: Host,
    pub(crate) to: Host,
}

impl Route {
    /// The way back.
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
    /// What runs its tasks.
    pub(crate) handle: Handle,
    /// What it answers its peers.
    pub(crate) peer: Arc<dyn PeerCalls>,
    /// What it answers clients and workers, once it serves them.
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
    /// Ways on which nothing arrives.
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

    /// Sets how the network is from now on.
    pub(crate) fn set_weather(&self, weather: Weather) {
        self.state().weather = weather;
    }

    /// Nothing that is sent on these ways arrives.
    pub(crate) fn cut(&self, routes: impl IntoIterator<Item = Route>) {
        self.state().cuts.extend(routes);
    }

    /// All ways are open again.
    pub(crate) fn mend(&self) {
        self.state().cuts.clear();
    }

    /// A process serves its peers.
    pub(crate) fn attach(&self, host: Host, process: Process) {
        let before = self.state().processes.insert(host, process);
        // Not under the lock: what it drops may send.
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

    /// Does what is due.
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

    /// Has something done at a time.
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

    /// Whether a message that is sent now arrives once more, later; then when.
    fn echo_ms(&self) -> Option<u64> {
        let state = &mut *self.state();
        let echo_ms = state.weather.echo_ms(&mut state.random)?;
        Some(self.time.now_ms() + echo_ms)
    }

    /// When somebody who hears nothing any more learns that.
    fn silence_ms(&self) -> u64 {
        let state = &mut *self.state();
        self.time.now_ms() + state.random.within(20..3_000)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
