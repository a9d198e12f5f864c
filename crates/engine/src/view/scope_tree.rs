//! Reads the scopes that are open in a run, as a tree (W53, W94).

use super::bytes::ROW_BYTES;
use crate::definition::{Definition, StepIndex, StepKind};
use crate::ids::{RunNumber, ScopeNumber};
use crate::limits::RUN_TREE_BYTES_MAX;
use crate::run::is_good;
use crate::scope_path;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::tables::{
    Activation, ActivationState, BranchResult, BranchResults, RunRecord, ScopePath, ScopeRecord,
    ScopeStep, Scopes, encode_prefix, visit,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A scope that is open, or a branch that has ended and whose step waits for others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeView {
    /// Its path; empty for the run itself.
    pub path: String,
    /// What it is.
    pub kind: ScopeKind,
    /// What it does.
    pub status: ScopeStatus,
    /// How far the branches or items have come that it waits for; `None` if it waits for none.
    pub progress: Option<ScopeProgressView>,
    /// The scopes in it, in the order of the definition or of the items. At most as many as a step has branches, or executes
    /// items concurrently, and as many as [`RUN_TREE_BYTES_MAX`] allows.
    pub scopes: Vec<ScopeView>,
    /// The number of scopes in it that are not shown, since the run would be too large.
    pub omitted_count: u32,
}

/// What a scope is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScopeKind {
    /// The run itself.
    Root,
    /// A branch of a `parallel` step.
    Branch,
    /// An iteration of a `forEach` step.
    Item,
    /// The block of a `block` step.
    Block,
    /// `onError` or `onCancel`.
    Handler,
}

impl ScopeKind {
    /// What the scopes are that a step opens.
    pub(super) fn below(definition: &Definition, step: StepIndex) -> Self {
        match definition.step(step).kind {
            _ if definition.is_handler(step) => Self::Handler,
            StepKind::Parallel(_) => Self::Branch,
            StepKind::ForEach(_) => Self::Item,
            _ => Self::Block,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Branch => "branch",
            Self::Item => "item",
            Self::Block => "block",
            Self::Handler => "handler",
        }
    }
}

/// What a scope does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScopeStatus {
    /// It executes.
    Running,
    /// Each of its active steps waits for something.
    Waiting,
    /// It was cancelled, and waits for the end of what it has called.
    Cancelling,
    /// It has ended with this outcome, which is `cancelled` if its step was decided before.
    Ended(String),
}

/// How many branches or items have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScopeProgressView {
    /// Those that have ended, in any way.
    pub done_count: u32,
    /// All of them, ended or not.
    pub total_count: u32,
    /// Those that have ended with a bad outcome, those that were cancelled excluded.
    pub failed_count: u32,
}

/// A run whose scopes are read.
#[derive(Clone, Copy)]
pub(super) struct ScopedRun<'a> {
    pub(super) number: RunNumber,
    pub(super) record: &'a RunRecord,
    pub(super) definition: &'a Definition,
    /// Its active steps.
    pub(super) active: &'a [Activation],
}

/// The tree of the scopes of a run; `None` if the run has ended.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub(super) fn scope_tree(
    reader: &dyn Reader,
    run: ScopedRun<'_>,
) -> Result<Option<ScopeView>, StoreError> {
    let record = run.record;
    if !record.status.is_open() {
        return Ok(None);
    }
    let open = OpenScopes {
        reader,
        run,
        below: below(reader, run.number)?,
        bytes_left: Cell::new(RUN_TREE_BYTES_MAX),
    };
    let mut root = open.view(ScopeNumber::ROOT, &ScopePath::default())?;
    if record.continuation.is_some() {
        root.status = ScopeStatus::Running;
    }
    let fixed = record.fixed_end.as_ref();
    if fixed.is_some_and(|end| end.cancelling_count > 0) {
        root.status = ScopeStatus::Cancelling;
    }
    Ok(Some(root))
}

/// The open scopes of a run, by the scope around them.
fn below(
    reader: &dyn Reader,
    number: RunNumber,
) -> Result<BTreeMap<ScopeNumber, Vec<ScopeRecord>>, StoreError> {
    let mut below: BTreeMap<_, Vec<_>> = BTreeMap::new();
    let range = KeyRange::prefix(&encode_prefix::<Scopes>(&number));
    visit::<Scopes>(reader, &range, Order::Ascending, |_, scope| {
        below.entry(scope.parent).or_default().push(scope);
        ControlFlow::Continue(())
    })?;
    Ok(below)
}

/// What is open in a run.
struct OpenScopes<'a> {
    reader: &'a dyn Reader,
    run: ScopedRun<'a>,
    /// The open scopes, by the scope around them.
    below: BTreeMap<ScopeNumber, Vec<ScopeRecord>>,
    /// What the tree may still take.
    bytes_left: Cell<u64>,
}

impl OpenScopes<'_> {
    /// Takes the room for a scope; false if there is none.
    fn take_room(&self, path: &ScopePath) -> bool {
        let text = scope_path::to_text(self.run.definition, path);
        let left = self.bytes_left.get();
        let left = left.checked_sub(ROW_BYTES + text.len() as u64);
        if let Some(left) = left {
            self.bytes_left.set(left);
        }
        left.is_some()
    }

    /// A scope with the scopes in it. A definition bounds how deep blocks nest (W55).
    fn view(&self, scope: ScopeNumber, path: &ScopePath) -> Result<ScopeView, StoreError> {
        let own = || {
            self.run
                .active
                .iter()
                .filter(|active| active.scope == scope)
        };
        let mut scopes: BTreeMap<u32, ScopeView> = BTreeMap::new();
        let mut omitted_count = 0;
        let mut progress = None;
        for opener in own() {
            let ended = self.ended_branches(opener)?;
            progress = progress.or_else(|| progress_of(self.run.definition, opener, &ended));
            for (position, branch) in ended {
                let path = path.with(ScopeStep {
                    step: opener.step,
                    visit: opener.visit,
                    position,
                });
                if self.take_room(&path) {
                    scopes.insert(position, self.ended(&path, &branch));
                } else {
                    omitted_count += 1;
                }
            }
        }
        let mut is_running = own().any(|active| active.state.is_executing());
        for open in self.below.get(&scope).into_iter().flatten() {
            let has_room = self.take_room(&open.id.path);
            let mut view = self.view(open.id.number, &open.id.path)?;
            if open.cancelling.is_some() {
                view.status = ScopeStatus::Cancelling;
            }
            is_running |= view.status == ScopeStatus::Running;
            if has_room {
                scopes.insert(open.position, view);
            } else {
                omitted_count += 1;
            }
        }
        Ok(ScopeView {
            path: scope_path::to_text(self.run.definition, path),
            kind: path.0.last().map_or(ScopeKind::Root, |last| {
                ScopeKind::below(self.run.definition, last.step)
            }),
            status: match is_running {
                true => ScopeStatus::Running,
                false => ScopeStatus::Waiting,
            },
            progress,
            scopes: scopes.into_values().collect(),
            omitted_count,
        })
    }

    /// The branches of a `parallel` step that have ended, by position. Ended items are only counted.
    fn ended_branches(&self, opener: &Activation) -> Result<Vec<(u32, BranchResult)>, StoreError> {
        let mut ended = Vec::new();
        if let (ActivationState::Branches(_), StepKind::Parallel(_)) =
            (&opener.state, &self.run.definition.step(opener.step).kind)
        {
            let key = (self.run.number, opener.number);
            let range = KeyRange::prefix(&encode_prefix::<BranchResults>(&key));
            visit::<BranchResults>(self.reader, &range, Order::Ascending, |key, result| {
                ended.push((key.2, result));
                ControlFlow::Continue(())
            })?;
        }
        Ok(ended)
    }

    /// A branch that has ended.
    fn ended(&self, path: &ScopePath, branch: &BranchResult) -> ScopeView {
        ScopeView {
            path: scope_path::to_text(self.run.definition, path),
            kind: ScopeKind::Branch,
            status: ScopeStatus::Ended(branch.outcome.to_string()),
            progress: None,
            scopes: Vec::new(),
            omitted_count: 0,
        }
    }
}

/// How far the branches or items of a step have come; `None` for a step that opens neither.
fn progress_of(
    definition: &Definition,
    opener: &Activation,
    ended: &[(u32, BranchResult)],
) -> Option<ScopeProgressView> {
    match (&opener.state, &definition.step(opener.step).kind) {
        (ActivationState::Branches(branches), StepKind::Parallel(parallel)) => {
            let has_failed = |(_, branch): &&(u32, BranchResult)| {
                !branch.is_cancelled && !is_good(&branch.outcome)
            };
            Some(ScopeProgressView {
                done_count: branches.ended_count,
                total_count: count(parallel.branches.len()),
                failed_count: count(ended.iter().filter(has_failed).count()),
            })
        }
        (ActivationState::Iterations(iterations), _) => Some(ScopeProgressView {
            done_count: iterations.ended_count,
            total_count: iterations.total_count,
            failed_count: iterations.failed_count,
        }),
        _ => None,
    }
}

fn count(count: usize) -> u32 {
    u32::try_from(count).expect("a step has few branches")
}
