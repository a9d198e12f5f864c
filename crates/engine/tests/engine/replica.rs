//! A replica for tests of single commands, which counts what its scans read.

use flotilla_engine::ids::Namespace;
use flotilla_engine::rows::{Cluster, ClusterRecord, Table, encode_key, encode_record, read};
use flotilla_engine::store::{KeyRange, MemoryStore, Order, Reader, StoreError, Visitor, Writes};
use flotilla_engine::{
    Body, Command, ENGINE_VERSION, Engine, Entry, NodeId, Offer, Rejection, Reply, Stamp, view,
};
use std::cell::{Cell, RefCell};

pub(crate) struct Replica {
    engine: Engine,
    pub(crate) store: MemoryStore,
    /// The place of the last entry in the log.
    pub(crate) raft_index: u64,
    pub(crate) now_ms: u64,
    /// The rows that the scans of the last command showed.
    pub(crate) rows: usize,
    /// Where its scans began.
    pub(crate) beginnings: Vec<Vec<u8>>,
    /// The keys that it looked up.
    pub(crate) lookups: Vec<Vec<u8>>,
    /// The rows that it wrote or deleted.
    pub(crate) writes_count: usize,
    /// What they take, in bytes.
    pub(crate) written_bytes: usize,
}

/// A store that counts the rows that scans show and the bytes that are read, and remembers where scans begin and what is
/// looked up.
pub(crate) struct Counting<'s> {
    store: &'s MemoryStore,
    rows: Cell<usize>,
    bytes: Cell<usize>,
    beginnings: RefCell<Vec<Vec<u8>>>,
    lookups: RefCell<Vec<Vec<u8>>>,
}

impl<'s> Counting<'s> {
    pub(crate) fn new(store: &'s MemoryStore) -> Self {
        Self {
            store,
            rows: Cell::new(0),
            bytes: Cell::new(0),
            beginnings: RefCell::default(),
            lookups: RefCell::default(),
        }
    }

    pub(crate) fn beginnings(&self) -> Vec<Vec<u8>> {
        self.beginnings.borrow().clone()
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.get()
    }

    /// The values that were read.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    fn add_bytes(&self, bytes: usize) {
        self.bytes.set(self.bytes.get() + bytes);
    }
}

impl Reader for Counting<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.lookups.borrow_mut().push(key.to_vec());
        let value = self.store.get(key)?;
        self.add_bytes(value.as_ref().map_or(0, Vec::len));
        Ok(value)
    }

    fn scan(&self, range: &KeyRange, order: Order, visitor: Visitor<'_>) -> Result<(), StoreError> {
        self.beginnings.borrow_mut().push(range.from.clone());
        self.store.scan(range, order, &mut |key, value| {
            self.rows.set(self.rows.get() + 1);
            self.add_bytes(value.len());
            visitor(key, value)
        })
    }
}

impl Replica {
    pub(crate) fn new() -> Self {
        let store = MemoryStore::default();
        Self {
            engine: Engine::open(&store, ENGINE_VERSION).expect("memory does not fail"),
            store,
            raft_index: 0,
            now_ms: 1_000,
            rows: 0,
            beginnings: Vec::new(),
            lookups: Vec::new(),
            writes_count: 0,
            written_bytes: 0,
        }
    }

    /// Applies a command of the default namespace in its own entry.
    pub(crate) fn ask(&mut self, body: Body) -> Result<Reply, Rejection> {
        let command = body.into_command(Namespace::default_namespace());
        self.apply(Vec::new(), command)
    }

    /// Applies a command in its own entry.
    pub(crate) fn apply(
        &mut self,
        offers: Vec<Offer>,
        command: Command,
    ) -> Result<Reply, Rejection> {
        self.raft_index += 1;
        let entry = Entry {
            stamp: Stamp {
                now_ms: self.now_ms,
                seed: self.raft_index.wrapping_mul(0x9e37_79b9_7f4a_7c15),
                node: NodeId(1),
            },
            offers,
            commands: vec![command.by_anyone()],
        };
        let counting = Counting::new(&self.store);
        let applied = self.engine.apply(&counting, self.raft_index, &entry);
        self.rows = counting.rows();
        self.beginnings = counting.beginnings.take();
        self.lookups = counting.lookups.take();
        let mut applied = applied.expect("memory does not fail");
        self.store.write(&applied.writes);
        self.writes_count = applied.writes.len();
        self.written_bytes = applied.writes.bytes();
        applied.replies.remove(0)
    }

    pub(crate) fn cluster(&self) -> ClusterRecord {
        view::cluster(&self.store).expect("memory does not fail")
    }

    /// Changes the cluster's record, as if more had happened than did.
    pub(crate) fn pretend(&mut self, edit: impl FnOnce(&mut ClusterRecord)) {
        let mut cluster = self.cluster();
        edit(&mut cluster);
        self.plant::<Cluster>(&(), &cluster);
    }

    /// Writes a record past the engine.
    pub(crate) fn plant<T: Table>(&mut self, key: &T::Key, record: &T::Record) {
        let row = (encode_key::<T>(key), Some(encode_record::<T>(record)));
        self.store.write(&Writes::from([row]));
        self.decide_as(ENGINE_VERSION);
    }

    /// Continues like a cluster that has agreed on an engine version.
    pub(crate) fn decide_as(&mut self, version: u32) {
        self.engine = Engine::open(&self.store, version).expect("memory does not fail");
    }

    /// Where the scans of the last command began in a table.
    pub(crate) fn scans_of<T: Table>(&self) -> Vec<&[u8]> {
        let keys = self.beginnings.iter().map(Vec::as_slice);
        keys.filter(|key| key[0] == T::NUMBER).collect()
    }

    /// How many records of a table the last command looked up by their keys.
    pub(crate) fn lookups_of<T: Table>(&self) -> usize {
        let keys = self.lookups.iter();
        keys.filter(|key| key[0] == T::NUMBER).count()
    }

    pub(crate) fn has<T: Table>(&self, key: &T::Key) -> bool {
        let record = read::<T>(&self.store, key);
        record.expect("memory does not fail").is_some()
    }
}
