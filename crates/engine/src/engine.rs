//! Applies entries of the log: the only way into the engine (design rules 1, 2, 10).

use crate::cache::Cache;
use crate::command::{Body, Command};
use crate::command_scope::CommandScope;
use crate::effect::Effect;
use crate::entry::Entry;
use crate::heads::QueueHeads;
use crate::overlay::Overlay;
use crate::rejection::Rejection;
use crate::reply::Reply;
use crate::store::{KeyRange, Order, Reader, StoreError, Writes};
use crate::tables::{Quarantine, QuarantinedItem, encode_prefix, visit};
use crate::turn::{Abort, Budgets, EntryState, Source, Spent, Turn, TurnResult};
use crate::{access, namespace, quarantine, quota, request, run};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The engine of one replica. It holds only caches; all state is in the store.
pub struct Engine {
    cache: Cache,
    heads: QueueHeads,
    quarantined: BTreeSet<QuarantinedItem>,
    /// Empty between entries; kept for its memory.
    overlay: Overlay,
    version: u32,
    budgets: Budgets,
}

/// The result of applying an entry.
#[derive(Debug, PartialEq, Eq)]
pub struct Applied {
    /// The writes that the store must make, in one batch.
    pub writes: Writes,
    /// The result of each command, in order.
    pub replies: Vec<Result<Reply, Rejection>>,
    /// The effects, in order.
    pub effects: Vec<Effect>,
    /// The cluster's time after the entry, in milliseconds.
    pub now_ms: u64,
    /// The budget that applying the entry used.
    pub spent: Spent,
}

impl Engine {
    /// Opens the engine over the contents of `store`, at startup or after a snapshot was installed. It behaves as the
    /// engine version on which the cluster has agreed, up to [`ENGINE_VERSION`](crate::ENGINE_VERSION).
    ///
    /// # Errors
    /// [`StoreError`] if the store fails.
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
            overlay: Overlay::default(),
            version,
            budgets: Budgets::default(),
        })
    }

    /// Switches to another agreed engine version, which applies from the next entry on.
    pub fn set_version(&mut self, version: u32) {
        self.version = version;
    }

    /// Sets other budgets than the default ones, so that a test reaches them with little work.
    pub fn set_budgets(&mut self, budgets: Budgets) {
        self.budgets = budgets;
    }

    /// Applies the entry at `raft_index` to the contents of `store`.
    ///
    /// The caller must write [`Applied::writes`] before the next call, or exit.
    ///
    /// # Errors
    /// [`StoreError`] if the store fails: the process must exit (design rule 10).
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
            overlay: &mut self.overlay,
            version: self.version,
            budgets: self.budgets,
        };
        let mut state = EntryState::new(source, raft_index, entry.stamp, &entry.offers);
        let now_ms = state.advance_clock()?;
        let mut replies = Vec::with_capacity(entry.commands.len());
        let mut effects = Vec::new();
        for (position, envelope) in (1..).zip(&entry.commands) {
            let command = &envelope.command;
            let mut turn = Turn::new(&mut state, position);
            turn.act_for(&envelope.actor);
            let result = catch_unwind(AssertUnwindSafe(|| carry_out(turn, command)));
            replies.push(match result {
                Ok(Ok((reply, new_effects))) => {
                    effects.extend(new_effects);
                    Ok(reply)
                }
                Ok(Err(Abort::Rejected(rejection))) => Err(rejection),
                Ok(Err(Abort::Store(error))) => return Err(error),
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

/// Applies a command in its turn. The turn's writes are kept only if the command is accepted.
fn carry_out(mut turn: Turn<'_, '_>, command: &Command) -> TurnResult<(Reply, Vec<Effect>)> {
    access::authorize(&mut turn, command)?;
    if let Some(reply) = request::remembered(&mut turn, command)? {
        return Ok((reply, Vec::new()));
    }
    if command.body.kind().needs_budget() && turn.is_spent() {
        return Err(Rejection::EntryFull.into());
    }
    request::admit(&mut turn, command)?;
    quota::admit_command(&mut turn, command)?;
    let reply = command.body.apply(&mut turn, &command.scope)?;
    match (&command.scope, &command.body) {
        (CommandScope::Namespace(_), Body::DeleteNamespace(_)) => turn.forget_namespace(),
        (CommandScope::Namespace(namespace), _) => namespace::follow(&mut turn, namespace)?,
        (CommandScope::Cluster, _) => {}
    }
    request::remember(&mut turn, command, &reply)?;
    quota::spend_command(&mut turn, command, &reply)?;
    run::write_all(&mut turn)?;
    quota::write_all(&mut turn)?;
    Ok((reply, turn.commit()))
}
