//! How many connections a port has, and which one is stopped for a new one.

use crate::limits::{
    ADMIN_CONNECTIONS_MAX, CLIENT_CONNECTIONS_MAX, FILES_PER_CONNECTION, HANDSHAKES_MAX,
    HTTP_CONNECTIONS_MAX, HTTP_IDLE_CONNECTIONS_MAX, PEER_CONNECTIONS_MAX,
};
use crate::tls::Port;
use nix::sys::resource::{Resource, getrlimit};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Addresses whose handshakes have succeeded that are remembered.
const KNOWN_MAX: usize = 4_096;

/// The bounds of the connections of a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// All connections.
    pub(crate) total_max: usize,
    /// Those from one address.
    pub(crate) address_max: usize,
    /// Those whose TLS handshake has not finished.
    pub(crate) handshakes_max: usize,
}

impl Bounds {
    /// The bounds of a node's port. A process that may open few files has few connections: its data needs files, too.
    pub(crate) fn of(port: Port) -> Self {
        let total_max = match port {
            Port::Peers => PEER_CONNECTIONS_MAX,
            Port::Clients => CLIENT_CONNECTIONS_MAX,
            Port::Http => HTTP_CONNECTIONS_MAX,
            Port::Admin => ADMIN_CONNECTIONS_MAX,
        };
        let files_max = getrlimit(Resource::RLIMIT_NOFILE).map_or(u64::MAX, |(soft, _)| soft);
        let files = usize::try_from(files_max / FILES_PER_CONNECTION).unwrap_or(usize::MAX);
        let total_max = total_max.min(files);
        match port {
            // A proxy is one address. Connections on which no whole request has arrived count as handshakes.
            Port::Http => Self {
                total_max,
                address_max: total_max,
                handshakes_max: HTTP_IDLE_CONNECTIONS_MAX.min(total_max / 2),
            },
            Port::Peers | Port::Clients | Port::Admin => Self {
                total_max,
                address_max: total_max / 2,
                handshakes_max: HANDSHAKES_MAX.min(total_max / 2),
            },
        }
    }
}

/// The connections of all ports of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeConnections {
    by_port: [(Port, Arc<Admission>); 4],
}

/// How many connections a port has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// All connections.
    pub(crate) total: usize,
    /// Those whose handshake has not finished.
    pub(crate) handshakes: usize,
    /// The maximum number of connections.
    pub(crate) total_max: usize,
}

impl NodeConnections {
    /// No connections yet.
    pub(crate) fn new() -> Self {
        let ports = [Port::Clients, Port::Peers, Port::Http, Port::Admin];
        let by_port = ports.map(|port| (port, Admission::new(Bounds::of(port))));
        Self { by_port }
    }

    /// The connections of a port.
    pub(crate) fn of(&self, port: Port) -> Arc<Admission> {
        let found = self.by_port.iter().find(|(one, _)| *one == port);
        let (_, admission) = found.expect("every port has its connections");
        Arc::clone(admission)
    }

    /// How many connections each port has, by its name.
    pub(crate) fn ports(&self) -> [(&'static str, Usage); 4] {
        self.by_port
            .each_ref()
            .map(|(port, admission)| (port.name(), admission.usage()))
    }
}

/// The connections of a port.
///
/// One that is beyond the bounds is closed. But if only too many handshakes are open, the oldest one is stopped: a caller that
/// connects and then sends nothing must not keep out others. Handshakes from addresses that have finished one before, such as
/// those of members, are stopped last.
#[derive(Debug)]
pub(crate) struct Admission {
    bounds: Bounds,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
    /// By number, so the oldest one is first.
    handshakes: BTreeMap<u64, Handshake>,
    number_next: u64,
    known: Known,
}

#[derive(Debug)]
struct Handshake {
    address: IpAddr,
    stop: CancellationToken,
}

/// The newest addresses whose handshakes have succeeded.
#[derive(Debug, Default)]
struct Known {
    addresses: HashSet<IpAddr>,
    in_order: VecDeque<IpAddr>,
}

impl Known {
    fn add(&mut self, address: IpAddr) {
        if !self.addresses.insert(address) {
            return;
        }
        self.in_order.push_back(address);
        if self.in_order.len() > KNOWN_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.addresses.remove(&oldest);
        }
    }
}

/// A connection that is not stopped for another one, until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    admitted: Arc<Admitted>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Admitted {
            admission,
            address,
            number,
            stop,
        } = &*self.admitted;
        let handshake = Handshake {
            address: *address,
            stop: stop.clone(),
        };
        admission.state().handshakes.insert(*number, handshake);
    }
}

/// A connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    address: IpAddr,
    number: u64,
    stop: CancellationToken,
}

impl Admission {
    pub(crate) fn new(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self {
            bounds,
            state: Mutex::default(),
        })
    }

    /// Admits a connection from `address`, whose handshake begins; `None` if there are too many.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Admitted> {
        let mut state = self.state();
        let from_address = state.by_address.get(&address).copied().unwrap_or_default();
        if state.total >= self.bounds.total_max || from_address >= self.bounds.address_max {
            return None;
        }
        while state.handshakes.len() >= self.bounds.handshakes_max {
            state.stop_oldest();
        }
        state.total += 1;
        *state.by_address.entry(address).or_default() += 1;
        let number = state.number_next;
        state.number_next += 1;
        let stop = CancellationToken::new();
        let handshake = Handshake {
            address,
            stop: stop.clone(),
        };
        state.handshakes.insert(number, handshake);
        drop(state);
        Some(Admitted {
            admission: Arc::clone(self),
            address,
            number,
            stop,
        })
    }

    /// How many connections there are.
    pub(crate) fn usage(&self) -> Usage {
        let state = self.state();
        Usage {
            total: state.total,
            handshakes: state.handshakes.len(),
            total_max: self.bounds.total_max,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Stops the oldest handshake, one from an unknown address if there is any.
    fn stop_oldest(&mut self) {
        let mut unknown = self.handshakes.iter();
        let unknown = unknown.find(|(_, one)| !self.known.addresses.contains(&one.address));
        let oldest = unknown.or_else(|| self.handshakes.first_key_value());
        let Some(number) = oldest.map(|(number, _)| *number) else {
            return;
        };
        if let Some(handshake) = self.handshakes.remove(&number) {
            handshake.stop.cancel();
        }
    }
}

impl Admitted {
    /// Waits until this connection is stopped for another one, before its handshake has finished.
    pub(crate) async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// A request has arrived, and is in progress until the result is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> Busy {
        self.admission.state().handshakes.remove(&self.number);
        Busy {
            admitted: Arc::clone(self),
        }
    }

    /// Its handshake has finished.
    pub(crate) fn establish(&self) {
        let mut state = self.admission.state();
        state.handshakes.remove(&self.number);
        state.known.add(self.address);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut state = self.admission.state();
        state.handshakes.remove(&self.number);
        state.total -= 1;
        if let Some(count) = state.by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                state.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::net::Ipv4Addr;

    const MEMBER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));

    fn admission(total_max: usize, address_max: usize, handshakes_max: usize) -> Arc<Admission> {
        Admission::new(Bounds {
            total_max,
            address_max,
            handshakes_max,
        })
    }

    fn is_stopped(admitted: &Admitted) -> bool {
        admitted.stopped().now_or_never().is_some()
    }

    #[test]
    fn a_connection_with_a_request_in_progress_is_not_stopped() {
        let admission = admission(3, 3, 1);
        let busy = Arc::new(admission.admit(STRANGER).expect("it is admitted"));
        let request = busy.begin_request();
        let idle = admission.admit(STRANGER).expect("it is admitted");
        let next = admission.admit(STRANGER).expect("it is admitted");
        assert!(is_stopped(&idle) && !is_stopped(&busy) && !is_stopped(&next));
        drop(request);
        drop(idle);
        drop(admission.admit(STRANGER).expect("it is admitted"));
        assert!(is_stopped(&busy), "it is the oldest one");
        drop((busy, next));
        assert_eq!(
            (admission.usage().total, admission.usage().handshakes),
            (0, 0)
        );
    }

    #[test]
    fn connections_have_bounds_in_total_and_by_address() {
        let admission = admission(3, 2, 3);
        let first = admission.admit(STRANGER).expect("the first one");
        let second = admission.admit(STRANGER).expect("the second one");
        assert!(admission.admit(STRANGER).is_none(), "from one address");
        let third = admission.admit(MEMBER).expect("from another address");
        assert!(admission.admit(MEMBER).is_none(), "in total");
        drop(first);
        assert!(admission.admit(MEMBER).is_some());
        drop((second, third));
        let state = admission.state();
        assert_eq!((state.total, state.handshakes.len()), (0, 0));
        assert!(state.by_address.is_empty());
    }

    #[test]
    fn the_oldest_handshake_is_stopped() {
        let admission = admission(9, 9, 2);
        let held = [STRANGER, STRANGER, STRANGER].map(|address| admission.admit(address));
        let stopped = held.map(|one| is_stopped(&one.expect("it is admitted")));
        assert_eq!(stopped, [true, false, false]);
    }

    #[test]
    fn established_connections_stay_and_handshakes_of_known_addresses_are_stopped_last() {
        let admission = admission(9, 9, 2);
        let established = admission.admit(MEMBER).expect("it is admitted");
        established.establish();
        let known = admission.admit(MEMBER).expect("it is admitted");
        let unknown = admission.admit(STRANGER).expect("it is admitted");
        let next = admission.admit(STRANGER).expect("it is admitted");
        assert!(!is_stopped(&established) && !is_stopped(&known));
        assert!(is_stopped(&unknown) && !is_stopped(&next));
        let second = admission.admit(MEMBER).expect("it is admitted");
        let third = admission.admit(MEMBER).expect("it is admitted");
        assert!(is_stopped(&next), "it is unknown");
        assert!(is_stopped(&known), "no unknown one is left");
        assert!(!is_stopped(&second) && !is_stopped(&third));
    }

    #[test]
    fn only_the_newest_addresses_are_remembered() {
        let mut known = Known::default();
        for number in 0..=u32::try_from(KNOWN_MAX).expect("a small number") {
            known.add(IpAddr::V4(Ipv4Addr::from(number)));
            known.add(IpAddr::V4(Ipv4Addr::from(number)));
        }
        assert_eq!(known.addresses.len(), KNOWN_MAX);
        assert!(!known.addresses.contains(&IpAddr::V4(Ipv4Addr::from(0))));
    }
}
