//! How many connections a port has, and which one is stopped for a new one.

use crate::limits::{
    ADMIN_CONNECTIONS_MAX, CLIENT_CONNECTIONS_MAX, FILES_PER_CONNECTION, HANDSHAKES_MAX,
    HTTP_CONNECTIONS_MAX, HTTP_IDLE_CONNECTIONS_MAX, PEER_CONNECTIONS_MAX,
};
use crate::tls::Port;
use nix::sys::resource::{Resource, getrlimit};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
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
        let handshakes_max = match port {
            // Connections on which no whole request has arrived count as handshakes.
            Port::Http => HTTP_IDLE_CONNECTIONS_MAX,
            Port::Peers | Port::Clients | Port::Admin => HANDSHAKES_MAX,
        };
        Self {
            total_max,
            // A proxy is one address.
            address_max: total_max / 2,
            handshakes_max: handshakes_max.min(total_max / 2),
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
/// The bounds must not keep out honest callers: at one of them, a new connection takes the place of the oldest one that is
/// in its handshake or whose caller has not been admitted yet, and those from addresses of admitted callers are closed last. If
/// all others are of admitted callers, the new one is closed.
#[derive(Debug)]
pub(crate) struct Admission {
    bounds: Bounds,
    state: Mutex<State>,
}

/// Connections that may be closed for another one, by number, so the oldest one is first.
type Closable = BTreeMap<u64, Arc<Handle>>;

#[derive(Debug, Default)]
struct State {
    /// All connections, without those that are being closed.
    total: usize,
    /// The same by address.
    by_address: HashMap<IpAddr, usize>,
    handshakes: Closable,
    /// Established connections whose callers have not been admitted yet.
    strangers: Closable,
    number_next: u64,
    known: Known,
}

/// The newest addresses of admitted callers.
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

/// A connection, as its port counts it.
#[derive(Debug)]
struct Handle {
    address: IpAddr,
    /// Grows with each connection, and with the end of its requests over HTTP. Changed only while the state is locked.
    number: AtomicU64,
    /// Cancelled once the connection must be closed.
    closing: CancellationToken,
    is_caller_admitted: AtomicBool,
    /// Requests over HTTP in progress. Changed only while the state is locked.
    requests: AtomicUsize,
    /// Whether it no longer counts. Changed only while the state is locked.
    has_ended: AtomicBool,
}

/// A connection that is not closed for another one, until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy {
    admitted: Arc<Admitted>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let Admitted { admission, handle } = &*self.admitted;
        let mut state = admission.state();
        let was_last = handle.requests.fetch_sub(1, Ordering::AcqRel) == 1;
        if was_last && !handle.has_ended.load(Ordering::Acquire) {
            // It has not been idle for longer than others.
            let number = state.next_number();
            handle.number.store(number, Ordering::Release);
            state.handshakes.insert(number, Arc::clone(handle));
        }
    }
}

/// A connection, until it is dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    admission: Arc<Admission>,
    handle: Arc<Handle>,
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
        if from_address >= self.bounds.address_max {
            state.close_oldest(|handle| handle.address == address)?;
        }
        if state.total >= self.bounds.total_max {
            state.close_oldest(|_| true)?;
        }
        while state.handshakes.len() >= self.bounds.handshakes_max {
            let number = oldest(&state.handshakes, &state.known, |_| true)?;
            state.close(number);
        }
        state.total += 1;
        *state.by_address.entry(address).or_default() += 1;
        let number = state.next_number();
        let handle = Arc::new(Handle {
            address,
            number: AtomicU64::new(number),
            closing: CancellationToken::new(),
            is_caller_admitted: AtomicBool::new(false),
            requests: AtomicUsize::new(0),
            has_ended: AtomicBool::new(false),
        });
        state.handshakes.insert(number, Arc::clone(&handle));
        drop(state);
        Some(Admitted {
            admission: Arc::clone(self),
            handle,
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

/// The oldest of these connections that `may_close` allows, from an unknown address if there is any.
fn oldest(
    connections: &Closable,
    known: &Known,
    may_close: impl Fn(&Handle) -> bool,
) -> Option<u64> {
    let mut allowed = connections.values().filter(|handle| may_close(handle));
    let first = allowed.next()?;
    let is_unknown = |handle: &&Arc<Handle>| !known.addresses.contains(&handle.address);
    let unknown = Some(first)
        .filter(is_unknown)
        .or_else(|| allowed.find(is_unknown));
    Some(unknown.unwrap_or(first).number())
}

impl Handle {
    /// Whether this is the first permitted call.
    fn mark_admitted(&self) -> bool {
        let is_admitted = &self.is_caller_admitted;
        // Every call but the first only reads.
        !is_admitted.load(Ordering::Acquire) && !is_admitted.swap(true, Ordering::AcqRel)
    }

    fn number(&self) -> u64 {
        self.number.load(Ordering::Acquire)
    }
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.number_next += 1;
        self.number_next
    }

    /// Closes the oldest connection that `may_close` allows; `None` if all of them stay.
    fn close_oldest(&mut self, may_close: impl Fn(&Handle) -> bool) -> Option<()> {
        let by_kind = [&self.handshakes, &self.strangers]
            .map(|connections| oldest(connections, &self.known, &may_close));
        let is_known = |number: &u64| {
            let handle = self
                .handshakes
                .get(number)
                .or_else(|| self.strangers.get(number));
            handle.is_some_and(|handle| self.known.addresses.contains(&handle.address))
        };
        let number = by_kind
            .into_iter()
            .flatten()
            .min_by_key(|number| (is_known(number), *number))?;
        self.close(number);
        Some(())
    }

    /// Closes a connection that may be closed for another one.
    fn close(&mut self, number: u64) {
        let handle = self.handshakes.remove(&number);
        if let Some(handle) = handle.or_else(|| self.strangers.remove(&number)) {
            self.release(&handle);
            handle.closing.cancel();
        }
    }

    /// From now on, the connection does not count.
    fn release(&mut self, handle: &Handle) {
        if handle.has_ended.swap(true, Ordering::AcqRel) {
            return;
        }
        let number = handle.number();
        self.handshakes.remove(&number);
        self.strangers.remove(&number);
        self.total -= 1;
        if let Some(count) = self.by_address.get_mut(&handle.address) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&handle.address);
            }
        }
    }
}

impl Admitted {
    /// The address from which it came.
    pub(crate) fn address(&self) -> IpAddr {
        self.handle.address
    }

    /// Cancelled once this connection must be closed. Cancelling it closes the connection.
    pub(crate) fn closing(&self) -> CancellationToken {
        self.handle.closing.clone()
    }

    /// A request has arrived, and is in progress until the result is dropped.
    pub(crate) fn begin_request(self: &Arc<Self>) -> Busy {
        let mut state = self.admission.state();
        self.handle.requests.fetch_add(1, Ordering::AcqRel);
        state.handshakes.remove(&self.handle.number());
        drop(state);
        Busy {
            admitted: Arc::clone(self),
        }
    }

    /// Its handshake has finished.
    pub(super) fn establish(&self) {
        let mut state = self.admission.state();
        let number = self.handle.number();
        if let Some(handle) = state.handshakes.remove(&number) {
            state.strangers.insert(number, handle);
        }
    }

    /// Calling the result marks the caller as admitted: from then on, connections from its address are closed last, and this one
    /// is not closed for another one, unless it is over HTTP, between two requests.
    pub(crate) fn admission_mark(&self) -> impl Fn() + Send + Sync + use<> {
        let (admission, handle) = (Arc::clone(&self.admission), Arc::clone(&self.handle));
        move || {
            if !handle.mark_admitted() {
                return;
            }
            let mut state = admission.state();
            state.strangers.remove(&handle.number());
            state.known.add(handle.address);
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.admission.state().release(&self.handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        admitted.closing().is_cancelled()
    }

    #[test]
    fn over_http_the_connection_that_was_idle_for_longest_is_closed_and_known_addresses_last() {
        let admission = admission(9, 9, 2);
        let [first, second] = [STRANGER; 2]
            .map(|address| Arc::new(admission.admit(address).expect("it is admitted")));
        drop(first.begin_request());
        let third = admission.admit(STRANGER).expect("it is admitted");
        assert!(is_stopped(&second) && !is_stopped(&first));
        drop((first, second, third));
        let known = Arc::new(admission.admit(MEMBER).expect("it is admitted"));
        known.admission_mark()();
        let unknown = admission.admit(STRANGER).expect("it is admitted");
        let next = admission.admit(STRANGER).expect("it is admitted");
        assert!(is_stopped(&unknown) && !is_stopped(&known) && !is_stopped(&next));
    }

    #[test]
    fn a_connection_with_a_request_in_progress_is_not_stopped() {
        let admission = admission(3, 3, 1);
        let busy = Arc::new(admission.admit(STRANGER).expect("it is admitted"));
        let request = busy.begin_request();
        let idle = admission.admit(STRANGER).expect("it is admitted");
        let next = admission.admit(STRANGER).expect("it is admitted");
        assert!(is_stopped(&idle) && !is_stopped(&busy) && !is_stopped(&next));
        // Over HTTP/2, a connection has several requests.
        let second_request = busy.begin_request();
        drop(request);
        drop((idle, next));
        let next = admission.admit(STRANGER).expect("it is admitted");
        let further = admission.admit(STRANGER).expect("it is admitted");
        assert!(is_stopped(&next) && !is_stopped(&busy));
        drop((second_request, further));
        drop(admission.admit(STRANGER).expect("it is admitted"));
        assert!(is_stopped(&busy), "it is the oldest one");
        drop((busy, next));
        assert_eq!(
            (admission.usage().total, admission.usage().handshakes),
            (0, 0)
        );
    }

    /// A connection of an admitted caller.
    fn of_admitted_caller(admission: &Arc<Admission>, address: IpAddr) -> Option<Admitted> {
        let admitted = admission.admit(address)?;
        admitted.establish();
        admitted.admission_mark()();
        Some(admitted)
    }

    #[test]
    fn connections_of_admitted_callers_have_bounds_in_total_and_by_address() {
        let admission = admission(3, 2, 3);
        let first = of_admitted_caller(&admission, STRANGER).expect("the first one");
        let second = of_admitted_caller(&admission, STRANGER).expect("the second one");
        assert!(admission.admit(STRANGER).is_none(), "from one address");
        let third = of_admitted_caller(&admission, MEMBER).expect("from another address");
        assert!(admission.admit(MEMBER).is_none(), "in total");
        assert!(!is_stopped(&first) && !is_stopped(&second) && !is_stopped(&third));
        drop(first);
        assert!(admission.admit(MEMBER).is_some());
        drop((second, third));
        let state = admission.state();
        assert_eq!((state.total, state.handshakes.len()), (0, 0));
        assert!(state.by_address.is_empty());
    }

    #[test]
    fn at_the_limit_a_new_connection_takes_the_place_of_the_oldest_stranger() {
        let admission = admission(3, 3, 3);
        let member = of_admitted_caller(&admission, MEMBER).expect("a member");
        let strangers = [STRANGER; 2].map(|address| admission.admit(address).expect("a stranger"));
        strangers.iter().for_each(Admitted::establish);
        let marks = strangers.each_ref().map(Admitted::admission_mark);
        let next = of_admitted_caller(&admission, MEMBER).expect("another member");
        assert_eq!(strangers.each_ref().map(is_stopped), [true, false]);
        // A stranger whose call is admitted after all keeps its connection.
        marks[1]();
        assert!(admission.admit(STRANGER).is_none());
        assert!(!is_stopped(&member) && !is_stopped(&next) && !is_stopped(&strangers[1]));
        // The one that was closed no longer counts, so its end changes nothing.
        assert_eq!(admission.usage().total, 3);
        let [first, second] = strangers;
        marks[0]();
        drop(first);
        assert_eq!(admission.usage().total, 3);
        drop((second, member, next));
        let state = admission.state();
        assert_eq!((state.total, state.strangers.len()), (0, 0));
        assert!(state.by_address.is_empty());
    }

    #[test]
    fn an_address_at_its_limit_closes_its_own_connections_only() {
        let admission = admission(9, 2, 9);
        let other = admission.admit(MEMBER).expect("it is admitted");
        let strangers = [STRANGER; 3].map(|address| admission.admit(address).expect("a stranger"));
        let stopped = strangers.each_ref().map(is_stopped);
        assert_eq!((stopped, is_stopped(&other)), ([true, false, false], false));
    }

    #[test]
    fn strangers_from_the_address_of_an_admitted_caller_are_closed_last() {
        let admission = admission(3, 3, 3);
        let member = of_admitted_caller(&admission, MEMBER).expect("a member");
        let reconnecting = admission.admit(MEMBER).expect("it is admitted");
        reconnecting.establish();
        let stranger = admission.admit(STRANGER).expect("it is admitted");
        let next = admission.admit(STRANGER).expect("it is admitted");
        assert!(is_stopped(&stranger) && !is_stopped(&reconnecting));
        drop((member, next));
    }

    #[test]
    fn the_bounds_of_every_port_leave_room_for_a_second_address() {
        for port in [Port::Clients, Port::Peers, Port::Http, Port::Admin] {
            let bounds = Bounds::of(port);
            assert_eq!(bounds.address_max, bounds.total_max / 2, "{port:?}");
        }
    }

    #[test]
    fn the_oldest_handshake_is_stopped() {
        let admission = admission(9, 9, 2);
        let held = [STRANGER, STRANGER, STRANGER].map(|address| admission.admit(address));
        let stopped = held.map(|one| is_stopped(&one.expect("it is admitted")));
        assert_eq!(stopped, [true, false, false]);
    }

    #[test]
    fn connections_of_admitted_callers_stay_and_handshakes_of_known_addresses_are_stopped_last() {
        let admission = admission(9, 9, 2);
        let established = of_admitted_caller(&admission, MEMBER).expect("it is admitted");
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
