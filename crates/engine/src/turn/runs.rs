//! The runs of a turn: each is loaded once, changed in place, and written once at the end of the turn.

use super::run_scopes::{LOOKED_UP, RunScopes};
use super::{Draft, RunBefore, Turn, TurnResult};
use crate::definition::{CallRole, StepIndex};
use crate::ids::{RunId, RunNumber, ScopeNumber};
use crate::json::Json;
use crate::mostly_default::MostlyDefault;
use crate::store::StoreError;
use crate::tables::{
    Activation, ActivationState, Activations, DefinitionNumber, DefinitionRecord, Definitions,
    Event, PayloadOwner, PayloadRef, Payloads, PayloadsHeld, RunRecord, RunStatus, Runs, ScopeId,
    ScopeProgress, ScopeRecord, StoredPayload, join_parts,
};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The initial capacity for events. Most turns add fewer.
const EVENTS_COMMON: usize = 8;

/// A run that a turn works on. A caller that takes it out of the turn must return it; otherwise the turn fails.
pub(crate) struct LoadedRun {
    pub(crate) number: RunNumber,
    pub(crate) record: Draft<RunRecord>,
    /// The revision that it is pinned to.
    pub(crate) definition: Arc<DefinitionRecord>,
    /// The id of the parent of a run created in this turn: its parent may be taken out, so that it cannot be read.
    pub(crate) parent_id: Option<Box<RunId>>,
    /// The run before the turn; `None` for a run created in this turn.
    before: Option<Box<RunBefore>>,
    /// The activations that were looked up, by number.
    activations: BTreeMap<u64, LoadedActivation>,
    /// Those that were looked up. An activation that was looked up has its scope here too.
    scopes: RunScopes,
    pub(super) events: Vec<Event>,
    /// The size of the events that the turn has not counted yet. In bytes.
    pub(super) noted_bytes: usize,
}

/// A visit to a step that begins.
#[derive(Clone, Copy)]
pub(crate) struct NewVisit {
    pub(crate) scope: ScopeNumber,
    pub(crate) step: StepIndex,
    /// From 1, in the scope.
    pub(crate) visit: u32,
}

/// An activation that was looked up.
struct LoadedActivation {
    /// Whether it was open before the turn.
    is_stored: bool,
    now: Now,
}

/// The state of a loaded activation.
enum Now {
    Here(Draft<Activation>),
    /// Taken out; it must be put back or left.
    Taken,
    /// The step was left.
    Left,
}

/// Names an activation of a run.
#[derive(Clone, Copy)]
pub(crate) struct ActivationRef {
    pub(crate) run: RunNumber,
    pub(crate) activation: u64,
}

/// The runs that a turn works on.
#[derive(Default)]
pub(crate) struct TurnRuns {
    /// By number. Most turns work on one run or a few, so this is a list; `None` while a run is taken out.
    runs: Vec<(RunNumber, Option<LoadedRun>)>,
    /// The number of runs that are taken out.
    taken_count: usize,
    /// The size of the events of runs that were returned, which are written at the end of the turn. In bytes.
    pub(super) noted_bytes: usize,
}

impl TurnRuns {
    /// The place of a run in the list, or where to insert it.
    fn place(&self, number: RunNumber) -> Result<usize, usize> {
        self.runs
            .binary_search_by_key(&number, |(number, _)| *number)
    }

    /// Returns a run that was taken out, or adds a new one.
    fn put(&mut self, run: LoadedRun) {
        match self.place(run.number) {
            Ok(place) => {
                let replaced = self.runs[place].1.replace(run);
                assert!(replaced.is_none(), "a turn has each run once");
            }
            Err(place) => self.runs.insert(place, (run.number, Some(run))),
        }
    }

    /// Takes out a run, if it is loaded.
    fn take(&mut self, number: RunNumber) -> Option<LoadedRun> {
        let place = self.place(number).ok()?;
        let run = self.runs[place].1.take();
        Some(run.expect("a run is taken out once"))
    }

    /// The record of a run, if it is loaded.
    fn record(&self, number: RunNumber) -> Option<Arc<RunRecord>> {
        let place = self.place(number).ok()?;
        let run = self.runs[place].1.as_ref()?;
        Some(run.record.share())
    }

    /// Whether no run is loaded.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.taken_count == 0
    }

    /// All runs.
    pub(crate) fn into_runs(self) -> impl Iterator<Item = LoadedRun> {
        self.runs.into_iter().filter_map(|(_, run)| run)
    }

    /// All runs, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut LoadedRun> {
        self.runs.iter_mut().filter_map(|(_, run)| run.as_mut())
    }
}

impl LoadedRun {
    /// Makes a run that this turn creates.
    pub(crate) fn new(
        number: RunNumber,
        record: RunRecord,
        definition: Arc<DefinitionRecord>,
    ) -> Self {
        Self {
            number,
            record: Draft::of(Arc::new(record)),
            definition,
            parent_id: None,
            before: None,
            activations: BTreeMap::new(),
            scopes: RunScopes::default(),
            events: Vec::with_capacity(EVENTS_COMMON),
            noted_bytes: 0,
        }
    }

    /// Makes a loaded run from a stored record, with no activation loaded.
    fn of(number: RunNumber, record: Draft<RunRecord>, definition: Arc<DefinitionRecord>) -> Self {
        let before = Box::new(RunBefore::of(&record));
        Self {
            number,
            record,
            definition,
            parent_id: None,
            before: Some(before),
            activations: BTreeMap::new(),
            scopes: RunScopes::default(),
            events: Vec::with_capacity(EVENTS_COMMON),
            noted_bytes: 0,
        }
    }

    /// Names an activation of the run.
    pub(crate) fn at(&self, activation: &Activation) -> ActivationRef {
        ActivationRef {
            run: self.number,
            activation: activation.number,
        }
    }

    /// Takes out the activation `number`, if it is open; the caller puts it back or leaves the step.
    pub(crate) fn take(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: u64,
    ) -> Result<Option<Draft<Activation>>, StoreError> {
        let Some(loaded) = self.look_up(turn, number)? else {
            return Ok(None);
        };
        match std::mem::replace(&mut loaded.now, Now::Taken) {
            Now::Here(activation) => Ok(Some(activation)),
            Now::Left => {
                loaded.now = Now::Left;
                Ok(None)
            }
            Now::Taken => panic!("an activation is taken once"),
        }
    }

    /// The activation `number`, if it is open.
    pub(crate) fn activation(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: u64,
    ) -> Result<Option<&Activation>, StoreError> {
        let loaded = self.look_up(turn, number)?;
        Ok(loaded.and_then(|loaded| match &loaded.now {
            Now::Here(activation) => Some(&**activation),
            Now::Left => None,
            Now::Taken => panic!("an activation that was taken is not read before it is returned"),
        }))
    }

    fn look_up(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: u64,
    ) -> Result<Option<&mut LoadedActivation>, StoreError> {
        match self.activations.entry(number) {
            Entry::Occupied(loaded) => Ok(Some(loaded.into_mut())),
            Entry::Vacant(place) => {
                let Some(activation) = turn.get::<Activations>(&(self.number, number))? else {
                    return Ok(None);
                };
                self.scopes.look_up(turn, (self.number, activation.scope))?;
                Ok(Some(place.insert(LoadedActivation {
                    is_stored: true,
                    now: Now::Here(Draft::of(activation)),
                })))
            }
        }
    }

    /// The scope `number` below the run, if it is open.
    pub(crate) fn scope(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: ScopeNumber,
    ) -> Result<Option<&ScopeRecord>, StoreError> {
        self.scopes.look_up(turn, (self.number, number))
    }

    /// Whether the scope `number` below the run is open and not cancelled.
    pub(crate) fn is_scope_live(
        &mut self,
        turn: &mut Turn<'_, '_>,
        number: ScopeNumber,
    ) -> Result<bool, StoreError> {
        let scope = self.scope(turn, number)?;
        Ok(scope.is_some_and(|scope| scope.cancelling.is_none()))
    }

    /// Looks up all scopes below the run.
    pub(crate) fn look_up_scopes(&mut self, turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
        self.scopes.look_up_all(turn, self.number)
    }

    /// The open scopes below the run that were looked up, in the order in which they began.
    pub(crate) fn open_scopes(&self) -> impl Iterator<Item = &ScopeRecord> {
        self.scopes.open_ones()
    }

    /// Opens a scope below the run.
    pub(crate) fn open_scope(&mut self, scope: ScopeRecord) {
        self.scopes.open(scope);
    }

    /// Ends a scope that was looked up.
    pub(crate) fn close_scope(&mut self, number: ScopeNumber) {
        self.scopes.close(number);
    }

    /// Counts the steps of a scope that ends the run, and of those around it, as steps of the run itself, from the last
    /// time that any open scope has waited: the run's parent counts them (W16).
    pub(crate) fn count_open_scopes(
        &mut self,
        turn: &mut Turn<'_, '_>,
        scope: ScopeNumber,
    ) -> Result<(), StoreError> {
        if self.record.scopes.opened_count == 0 {
            return Ok(());
        }
        self.scopes.look_up_all(turn, self.number)?;
        for number in self.active(turn)? {
            let active = self.activation(turn, number)?.map(|active| &active.state);
            let has_waited = active.is_some_and(|state| match state {
                ActivationState::Branches(branches) => branches.has_waited,
                ActivationState::Iterations(iterations) => iterations.has_waited,
                _ => false,
            });
            self.record.progress.has_waited |= has_waited;
        }
        let mut number = scope;
        while let Some(open) = self.scope(turn, number)? {
            let (parent, steps) = (open.parent, open.progress.steps_since_wait);
            self.record.progress.steps_since_wait += steps;
            number = parent;
        }
        if self.open_scopes().any(|open| open.progress.has_waited) {
            self.record.progress.has_waited = true;
        }
        Ok(())
    }

    /// The id of a scope that was looked up, itself or with an activation.
    pub(crate) fn scope_id(&self, number: ScopeNumber) -> ScopeId {
        match number {
            ScopeNumber::ROOT => ScopeId::default(),
            number => self.scopes.id(number),
        }
    }

    /// Changes a scope that was looked up, if it is open.
    pub(crate) fn scope_mut(&mut self, number: ScopeNumber) -> Option<&mut ScopeRecord> {
        self.scopes.change(number)
    }

    /// How far a scope has come that was looked up, itself or with an activation.
    pub(crate) fn progress(&mut self, number: ScopeNumber) -> &mut ScopeProgress {
        match number {
            ScopeNumber::ROOT => &mut self.record.progress,
            number => &mut self.scopes.change(number).expect(LOOKED_UP).progress,
        }
    }

    /// The numbers of the open activations that are not taken out, in the order in which they were entered.
    pub(crate) fn active(&mut self, turn: &mut Turn<'_, '_>) -> Result<Vec<u64>, StoreError> {
        let loaded = self.activations.values();
        let known_count = loaded.filter(|one| !matches!(one.now, Now::Left)).count();
        if known_count < self.record.active_count as usize {
            for ((_, number), _) in turn.list::<Activations>(&self.number, usize::MAX)? {
                self.look_up(turn, number)?;
            }
        }
        let loaded = self.activations.iter();
        let here = loaded.filter(|(_, one)| matches!(one.now, Now::Here(_)));
        Ok(here.map(|(number, _)| *number).collect())
    }

    /// Creates an activation of a step, executing, with the run's input. It is taken out. Its scope was looked up.
    pub(crate) fn activate(&mut self, now_ms: u64, new: NewVisit) -> Draft<Activation> {
        self.record.activations_count += 1;
        self.record.active_count += 1;
        let activation = Activation {
            number: self.record.activations_count,
            scope: new.scope,
            step: new.step,
            visit: new.visit,
            call: CallRole::Target,
            attempt: 1,
            earlier_attempts_count: 0,
            polls_count: 0,
            started_at_ms: now_ms,
            call_started_at_ms: now_ms,
            timeouts: MostlyDefault::default(),
            compensations_before: self.record.compensations.entered_count,
            is_call_open: false,
            undone: None,
            ending: MostlyDefault::default(),
            input: self.record.input,
            state: ActivationState::Executing,
        };
        let loaded = LoadedActivation {
            is_stored: false,
            now: Now::Taken,
        };
        self.activations.insert(activation.number, loaded);
        Draft::of(Arc::new(activation))
    }

    /// Makes an activation that was left active again, as it was. It is taken out. Its scope was looked up.
    pub(crate) fn activate_again(&mut self, former: Activation) -> Draft<Activation> {
        // It is counted as a further activation.
        self.record.activations_count += 1;
        self.record.active_count += 1;
        let now = Now::Taken;
        let is_stored = false;
        let loaded = LoadedActivation { is_stored, now };
        let replaced = self.activations.insert(former.number, loaded);
        assert!(replaced.is_none(), "a turn does not end and resume a run");
        Draft::of(Arc::new(former))
    }

    /// Puts back an activation that was taken out.
    pub(crate) fn put_back(&mut self, activation: Draft<Activation>) {
        let loaded = self.taken(activation.number);
        loaded.now = Now::Here(activation);
    }

    /// Leaves the step of an activation that was taken out.
    pub(crate) fn leave(&mut self, activation: &Activation) {
        self.taken(activation.number).now = Now::Left;
        self.record.active_count -= 1;
    }

    fn taken(&mut self, number: u64) -> &mut LoadedActivation {
        let loaded = self.activations.get_mut(&number);
        let taken = loaded.filter(|one| matches!(one.now, Now::Taken));
        taken.expect("only what was taken out is put back or left")
    }

    /// Stores a payload with the run.
    pub(crate) fn store_payload(
        &mut self,
        turn: &mut Turn<'_, '_>,
        payload: impl Into<StoredPayload>,
    ) -> PayloadRef {
        let reference = PayloadRef {
            owner: PayloadOwner::Run(self.number),
            position: self.record.payloads_count,
        };
        self.record.payloads_count += 1;
        turn.put::<Payloads>(&reference, payload.into());
        reference
    }

    /// Records that the event `event`, or an action run from that event on, refers to a payload of the run. A row is
    /// needed only if an earlier turn stored the payload; otherwise the payload goes with the record of this turn.
    pub(crate) fn hold_payload(
        &self,
        turn: &mut Turn<'_, '_>,
        payload: PayloadRef,
        event: u64,
    ) -> Result<(), StoreError> {
        let cursor = &self.record.history;
        let stored_before = self.before.as_ref().map_or(0, |run| run.payloads_count);
        let is_head = payload.position < cursor.trimming.head_payloads_count.max(1);
        if is_head || payload.position >= stored_before {
            return Ok(());
        }
        let key = (self.number, payload.position);
        let held = turn.get::<PayloadsHeld>(&key)?;
        // A payload that an event before the trimmed ones refers to is kept for that event.
        if held.is_none_or(|held| *held > cursor.trimming.after) {
            turn.put::<PayloadsHeld>(&key, event);
        }
        Ok(())
    }

    /// The run before the turn; `None` for a run created in this turn.
    pub(crate) fn before(&self) -> Option<&RunBefore> {
        self.before.as_deref()
    }

    /// Ends the changes of this turn: derives the run's status and returns its new events.
    pub(crate) fn end_changes(&mut self) -> Vec<Event> {
        self.derive_status();
        std::mem::take(&mut self.events)
    }

    /// The scope got what it waited for from outside: its limit of steps without a wait starts again (W16).
    pub(crate) fn end_wait(&mut self, scope: ScopeNumber) {
        let progress = self.progress(scope);
        progress.steps_since_wait = 0;
        progress.has_waited = true;
        self.record.unwaited_steps_count = 0;
    }

    /// What a step of the scope had opened or started has ended: its steps count as those of the scope, from the last time
    /// that either of them has waited (W16).
    pub(crate) fn add_steps(&mut self, scope: ScopeNumber, has_waited: bool, count: u32) {
        if has_waited {
            self.end_wait(scope);
        }
        self.progress(scope).steps_since_wait += count;
    }

    /// The status of an open run follows from what it waits for (W21).
    fn derive_status(&mut self) {
        if !self.record.status.is_open() {
            return;
        }
        let is_executing = |one: &LoadedActivation| match &one.now {
            Now::Here(activation) => activation.state.is_executing(),
            Now::Taken | Now::Left => false,
        };
        let has_begun = self.record.has_begun() && !self.record.is_held_up();
        let status = if !has_begun {
            RunStatus::Pending
        } else if self.record.continuation.is_some() || self.activations.values().any(is_executing)
        {
            RunStatus::Running
        } else {
            RunStatus::Waiting
        };
        if self.record.status != status {
            self.record.become_status(status);
        }
    }

    /// Writes what the turn changed.
    pub(crate) fn write(self, turn: &mut Turn<'_, '_>) {
        for (number, LoadedActivation { is_stored, now }) in self.activations {
            let key = (self.number, number);
            match now {
                Now::Here(activation) if is_stored && !activation.is_changed() => {}
                Now::Here(activation) => turn.put::<Activations>(&key, activation),
                Now::Left if is_stored => turn.delete::<Activations>(&key),
                Now::Left => {}
                Now::Taken => panic!("an activation that is taken out is put back or left"),
            }
        }
        self.scopes.write(turn, self.number);
        if self.before.is_none() || self.record.is_changed() {
            turn.put::<Runs>(&self.number, self.record);
        }
    }
}

impl Turn<'_, '_> {
    /// Takes the run `number` out of the turn.
    ///
    /// # Panics
    /// If it does not exist: references to runs are never dangling.
    pub(crate) fn load_run(&mut self, number: RunNumber) -> TurnResult<LoadedRun> {
        let run = self.load_run_if_kept(number)?;
        Ok(run.expect("a run is kept as long as anything refers to it"))
    }

    /// Takes the run `number` out of the turn, if it is still retained.
    pub(crate) fn load_run_if_kept(&mut self, number: RunNumber) -> TurnResult<Option<LoadedRun>> {
        let run = match self.runs.take(number) {
            Some(run) => run,
            None => match self.draft::<Runs>(&number)? {
                Some(record) => {
                    let definition = self.pinned(record.definition)?;
                    LoadedRun::of(number, record, definition)
                }
                None => return Ok(None),
            },
        };
        self.runs.taken_count += 1;
        Ok(Some(run))
    }

    /// Takes all runs of the turn, at its end.
    pub(crate) fn take_runs(&mut self) -> TurnRuns {
        let runs = std::mem::take(&mut self.runs);
        assert_eq!(runs.taken_count, 0, "a run that is taken is returned");
        runs
    }

    /// Adds a run that the turn creates.
    pub(crate) fn add_run(&mut self, run: LoadedRun) {
        self.runs.put(run);
    }

    /// Returns a run to the turn.
    pub(crate) fn put_back_run(&mut self, mut run: LoadedRun) {
        self.count_events(&mut run);
        self.runs.taken_count -= 1;
        self.runs.put(run);
    }

    /// The current record of a run within the turn.
    pub(crate) fn run_record(
        &mut self,
        number: RunNumber,
    ) -> Result<Option<Arc<RunRecord>>, StoreError> {
        match self.runs.record(number) {
            Some(record) => Ok(Some(record)),
            None => self.get::<Runs>(&number),
        }
    }

    /// The revision that a run is pinned to.
    ///
    /// # Panics
    /// If it does not exist: definitions outlive their runs.
    pub(crate) fn pinned(&mut self, number: DefinitionNumber) -> TurnResult<Arc<DefinitionRecord>> {
        let record = self.get::<Definitions>(&number)?;
        Ok(record.expect("a definition is kept as long as anything refers to it"))
    }

    /// Reads the text of a payload.
    ///
    /// # Panics
    /// If it does not exist: payloads live as long as their owner.
    pub(crate) fn payload(&mut self, reference: PayloadRef) -> Result<Json, StoreError> {
        let payload = self.stored_payload(reference)?;
        let parts = match &*payload {
            StoredPayload::Text(text) => return Ok(text.clone()),
            StoredPayload::Parts(parts) => parts,
        };
        let input = self.stored_payload(PayloadRef::input_of(reference.owner))?;
        let StoredPayload::Text(input) = &*input else {
            panic!("an input is stored as text");
        };
        let text = join_parts(parts, input);
        self.spent.read_bytes += text.as_str().len();
        Ok(text)
    }

    fn stored_payload(&mut self, reference: PayloadRef) -> Result<Arc<StoredPayload>, StoreError> {
        let payload = self.get::<Payloads>(&reference)?;
        Ok(payload.expect("a payload is kept as long as its owner"))
    }
}
