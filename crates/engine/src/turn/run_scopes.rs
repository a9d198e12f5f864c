//! The scopes below a run that a turn works on: each is looked up once, changed in place, and written with its run.

use super::{Draft, Turn};
use crate::ids::{RunNumber, ScopeNumber};
use crate::store::StoreError;
use crate::tables::{ScopeId, ScopeRecord, Scopes};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The scopes below a run that were looked up, by number.
#[derive(Default)]
pub(super) struct RunScopes(BTreeMap<ScopeNumber, LoadedScope>);

/// A scope that was looked up.
struct LoadedScope {
    /// Whether the scope was open before the turn.
    is_stored: bool,
    /// `None` once it has ended.
    now: Option<Draft<ScopeRecord>>,
}

impl RunScopes {
    /// Loads a scope, if it is open and below the run.
    pub(super) fn look_up(
        &mut self,
        turn: &mut Turn<'_, '_>,
        key: (RunNumber, ScopeNumber),
    ) -> Result<Option<&ScopeRecord>, StoreError> {
        let (_, number) = key;
        if number != ScopeNumber::ROOT
            && !self.0.contains_key(&number)
            && let Some(scope) = turn.get::<Scopes>(&key)?
        {
            let loaded = LoadedScope {
                is_stored: true,
                now: Some(Draft::of(scope)),
            };
            self.0.insert(number, loaded);
        }
        let loaded = self.0.get(&number);
        Ok(loaded.and_then(|loaded| loaded.now.as_deref()))
    }

    /// The open ones, by number.
    pub(super) fn open_ones(&self) -> impl Iterator<Item = &ScopeRecord> {
        self.0.values().filter_map(|loaded| loaded.now.as_deref())
    }

    /// Adds a scope that begins.
    pub(super) fn open(&mut self, scope: ScopeRecord) {
        let number = scope.id.number;
        let loaded = LoadedScope {
            is_stored: false,
            now: Some(Draft::of(Arc::new(scope))),
        };
        self.0.insert(number, loaded);
    }

    /// Ends a scope that was looked up.
    pub(super) fn close(&mut self, number: ScopeNumber) {
        let loaded = self.0.get_mut(&number);
        loaded.expect("the scope was looked up").now = None;
    }

    /// Loads all scopes of the run.
    pub(super) fn look_up_all(
        &mut self,
        turn: &mut Turn<'_, '_>,
        run: RunNumber,
    ) -> Result<(), StoreError> {
        for (key, _) in turn.list::<Scopes>(&run, usize::MAX)? {
            self.look_up(turn, key)?;
        }
        Ok(())
    }

    /// The id of a scope that was looked up.
    pub(super) fn id(&self, number: ScopeNumber) -> ScopeId {
        let loaded = self.0.get(&number);
        let scope = loaded.and_then(|loaded| loaded.now.as_ref());
        scope.expect(LOOKED_UP).id.clone()
    }

    /// Changes a scope that was looked up, if it is open.
    pub(super) fn change(&mut self, number: ScopeNumber) -> Option<&mut ScopeRecord> {
        let loaded = self.0.get_mut(&number)?;
        loaded.now.as_deref_mut()
    }

    /// Writes what the turn changed.
    pub(super) fn write(self, turn: &mut Turn<'_, '_>, run: RunNumber) {
        for (number, LoadedScope { is_stored, now }) in self.0 {
            let key = (run, number);
            match now {
                Some(scope) if is_stored && !scope.is_changed() => {}
                Some(scope) => turn.put::<Scopes>(&key, scope),
                None if is_stored => turn.delete::<Scopes>(&key),
                None => {}
            }
        }
    }
}

/// Why a scope is there.
pub(super) const LOOKED_UP: &str = "an open scope was looked up, itself or with an activation";
