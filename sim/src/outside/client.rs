//! A client: starts orders and trips, approves, cancels and resumes them, invokes actions, appends records, increments
//! keys.

use super::caller::Caller;
use super::workload;
use crate::record::{KeyRead, Outcome};
use crate::time::Time;
use flotilla_engine::ids::{KvKey, RunId};
use flotilla_engine::{Reply, SetCondition};

/// Keys that all clients write to.
const KEYS: [&str; 3] = ["a", "b", "c"];

/// How much load the clients generate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) clients: u64,
    pub(crate) workers: u64,
    /// The maximum pause of a client between two commands, in milliseconds.
    pub(crate) rest_ms_max: u64,
    /// The size of an order's input, in bytes.
    pub(crate) payload_bytes: usize,
}

/// A client.
pub(crate) struct Client {
    pub(crate) caller: Caller,
    pub(crate) time: Time,
    pub(crate) load: Load,
    /// When it stops making new requests, in milliseconds.
    pub(crate) until_ms: u64,
    /// Orders that it has not approved yet.
    pub(crate) orders: Vec<RunId>,
    /// Orders that it has started.
    pub(crate) begun: Vec<RunId>,
    /// Trips that it has neither approved nor cancelled yet.
    pub(crate) trips: Vec<RunId>,
    pub(crate) requested_count: u64,
}

impl Client {
    /// Makes one request after another until the time is over.
    pub(crate) async fn run(mut self) {
        while self.time.now_ms() < self.until_ms {
            self.requested_count += 1;
            match self.caller.random.within(0..13) {
                0..3 => self.start().await,
                3..5 => self.approve().await,
                5 => self.cancel_or_repeat().await,
                6 => self.invoke().await,
                7 => self.set().await,
                8 => self.compare_and_set().await,
                9..11 => self.travel().await,
                11 => self.append().await,
                _ => {
                    let key = self.key();
                    // The result of the read is in the record.
                    let _ = self.read(&key).await;
                }
            }
            self.caller.pause(0..self.load.rest_ms_max + 1).await;
        }
    }

    async fn start(&mut self) {
        // Sometimes an earlier key: the response is the earlier run.
        let requested = if self.caller.random.chance(100) {
            self.caller.random.within(1..self.requested_count + 1)
        } else {
            self.requested_count
        };
        let key = format!("{} {requested}", self.caller.name);
        let command = workload::start(&key, self.load.payload_bytes);
        let command = self.caller.command_without_id(command);
        let outcome = self.caller.submit(command).await;
        self.note_started(&outcome);
    }

    fn note_started(&mut self, outcome: &Outcome) {
        if let Outcome::Acknowledged(Reply::RunStarted(started)) = outcome {
            self.orders.push(started.run_id.clone());
            self.begun.push(started.run_id.clone());
        }
    }

    async fn approve(&mut self) {
        let Some(run_id) = self.orders.pop() else {
            return;
        };
        let id = format!("{} {}", self.caller.name, self.requested_count);
        let command = workload::approve(&run_id, &id);
        let command = self.caller.command_without_id(command);
        self.caller.submit(command).await;
    }

    /// Cancels an order, resumes or retries it.
    async fn cancel_or_repeat(&mut self) {
        if self.begun.is_empty() {
            return;
        }
        let run_id = self.caller.random.pick(&self.begun).clone();
        let body = match self.caller.random.within(0..3) {
            0 => workload::cancel(&run_id, self.caller.random.chance(300)),
            1 => {
                let versions = [None, Some("1"), Some("2")];
                workload::resume(&run_id, *self.caller.random.pick(&versions))
            }
            _ => {
                let key = format!("{} again {}", self.caller.name, self.requested_count);
                let steps = [None, Some("approve"), Some("ship")];
                workload::retry(&run_id, &key, *self.caller.random.pick(&steps))
            }
        };
        let command = self.caller.command(body);
        let outcome = self.caller.submit(command).await;
        self.note_started(&outcome);
    }

    /// Starts a trip, approves or cancels one.
    async fn travel(&mut self) {
        let id = format!("{} {}", self.caller.name, self.requested_count);
        let open = match self.caller.random.chance(500) {
            true => self.trips.pop(),
            false => None,
        };
        let Some(run_id) = open else {
            let command = workload::start_trip(&format!("{id} trip"));
            let command = self.caller.command_without_id(command);
            let outcome = self.caller.submit(command).await;
            if let Outcome::Acknowledged(Reply::RunStarted(started)) = outcome {
                self.trips.push(started.run_id);
            }
            return;
        };
        let command = match self.caller.random.chance(500) {
            true => self
                .caller
                .command_without_id(workload::approve(&run_id, &id)),
            false => self.caller.command(workload::cancel(&run_id, false)),
        };
        self.caller.submit(command).await;
    }

    async fn invoke(&mut self) {
        let key = format!("{} {}", self.caller.name, self.requested_count);
        let command = self.caller.command_without_id(workload::invoke(&key));
        self.caller.submit(command).await;
    }

    async fn append(&mut self) {
        let command = workload::append(&self.value());
        let command = self.caller.command(command);
        self.caller.submit(command).await;
    }

    async fn set(&mut self) {
        let (key, value) = (self.key(), self.value());
        let body = workload::set(&key, &value, SetCondition::Always);
        let command = self.caller.command(body);
        self.caller.submit(command).await;
    }

    async fn compare_and_set(&mut self) {
        let (key, value) = (self.key(), self.value());
        let Ok(found) = self.read(&key).await else {
            return;
        };
        let condition = found.map_or(SetCondition::IfAbsent, SetCondition::IfVersion);
        let command = self.caller.command(workload::set(&key, &value, condition));
        self.caller.submit(command).await;
    }

    /// The version of a key, if the key exists; `Err` if that is unknown.
    async fn read(&mut self, key: &KvKey) -> Result<Option<u64>, ()> {
        let invoked_ms = self.time.now_ms();
        let route = self.caller.route();
        let found = self.caller.read_at(route, key).await?;
        let read = KeyRead {
            key: key.to_string(),
            invoked_ms,
            returned_ms: self.time.now_ms(),
            found: found.map(|record| (record.version, record.value.to_vec())),
        };
        let version = read.found.as_ref().map(|(version, _)| *version);
        self.caller.record.read(&self.caller.name, read);
        Ok(version)
    }

    fn key(&mut self) -> KvKey {
        KvKey::new(*self.caller.random.pick(&KEYS)).expect("a valid key")
    }

    fn value(&self) -> String {
        format!("{} {}", self.caller.name, self.requested_count)
    }
}
