//! Applying entries: the one way in (design rules 1, 2, 10).

use crate::cache::Cache;
use crate::command::Command;
use crate::effect::Effect;
use crate::entry::Entry;
use crate::heads::QueueHeads;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{KeyRange, Order, Reader, StoreError, Writes};
use crate::tables::{Quarantine, Quarantined, encode_prefix, visit};
use crate::turn::{EntryState, Halt, Outcome, Source, Spent, Turn};
use crate::{namespace, quarantine, request, run};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The engine of one replica: caches only, since all state is in the store.
pub struct Engine {
    cache: Cache,
    heads: QueueHeads,
    quarantined: BTreeSet<Quarantined>,
    version: u32,
}

/// What applying an entry gave.
#[derive(Debug, PartialEq, Eq)]
pub struct Applied {
    /// What the store must now write, in one batch.
    pub writes: Writes,
    /// One for each command, in order.
    pub replies: Vec<Result<Reply, Rejection>>,
    /// Hints for the outside, in order.
    pub effects: Vec<Effect>,
    /// The time after the entry, in milliseconds.
    pub now_ms: u64,
    /// What applying it took.
    pub spent: Spent,
}

impl Engine {
    /// The engine over what `store` holds; also after a snapshot was installed. It decides as the engine version on
    /// which the cluster has agreed, up to [`ENGINE_VERSION`](crate::ENGINE_VERSION).
    ///
    /// # Errors
    /// [`StoreError`] when the store fails.
    pub fn open(store: &dyn Reader, version: u32) -> Result<Self, StoreError> {
        let mut quarantined = BTreeSet::new();
        let all = KeyRange::prefix(&encode_prefix::<Quarantine>(&()));
        visit::<Quarantine>(store, &all, Order::Ascending, |subject, _| {
            quarantined.insert(subject);
            ControlFlow::Continue(())
        })?;
        Ok(Self {
            cache: Cache::new(),
            heads: QueueHeads::default(),
            quarantined,
            version,
        })
    }

    /// The cluster has agreed on another engine version: from the next entry on it decides as that one.
    pub fn set_version(&mut self, version: u32) {
        self.version = version;
    }

    /// Applies the entry at `raft_index` to what `store` holds.
    ///
    /// The caller must write [`Applied::writes`] before the next call, or end the process.
    ///
    /// # Errors
    /// [`StoreError`] when the store fails: the process must end (design rule 10).
    pub fn apply(
        &mut self,
        store: &dyn Reader,
        raft_index: u64,
        entry: &Entry,
    ) -> Result<Applied, StoreError> {
        let source = Source {
            store,
            cache: &mut self.cache,
            heads: &mut self.heads,
            quarantined: &mut self.quarantined,
            version: self.version,
        };
        let mut state = EntryState::new(source, raft_index, entry.stamp, &entry.offers);
        let now_ms = state.advance_clock()?;
        let mut replies = Vec::with_capacity(entry.commands.len());
        let mut effects = Vec::new();
        for (position, command) in (1..).zip(&entry.commands) {
            let turn = Turn::new(&mut state, position);
            let result = catch_unwind(AssertUnwindSafe(|| carry_out(turn, command)));
            replies.push(match result {
                Ok(Ok((reply, new_effects))) => {
                    effects.extend(new_effects);
                    Ok(reply)
                }
                Ok(Err(Halt::Rejected(rejection))) => Err(rejection),
                Ok(Err(Halt::Store(error))) => return Err(error),
                Err(panic) => {
                    let contained = quarantine::contain(&mut state, command, panic.as_ref())?;
                    effects.extend(contained.effects);
                    Err(contained.rejection)
                }
            });
        }
        let spent = state.spent();
        Ok(Applied {
            spent,
            writes: state.finish(),
            replies,
            effects,
            now_ms,
        })
    }
}

/// Carries a command out in its turn; the overlay is kept only if it is accepted.
fn carry_out(mut turn: Turn<'_, '_>, command: &Command) -> Outcome<(Reply, Vec<Effect>)> {
    if let Some(reply) = request::remembered(&mut turn, command)? {
        return Ok((reply, Vec::new()));
    }
    if command.body.kind().is_obligation() && turn.is_spent() {
        return Err(Rejection::EntryFull.into());
    }
    request::admit(&mut turn, command)?;
    let reply = command.body.apply(&mut turn, &command.namespace)?;
    namespace::follow(&mut turn, command)?;
    request::remember(&mut turn, command, &reply)?;
    run::write_all(&mut turn)?;
    Ok((reply, turn.commit()))
}
