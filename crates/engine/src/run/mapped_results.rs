//! Maps the results of an ended run to the definition of a new run, whose steps may differ (W90).
//!
//! Each result is assigned to the step with the same name in the new definition. It is dropped if there is no such step, if
//! the enclosing steps differ, or if an enclosing step has no result, because then nothing can read it.

use super::history_replay::ReplayedResult;
use crate::definition::{BlockIndex, Definition, StepIndex, StepKind};
use crate::ids::{ScopeNumber, StepName};
use crate::tables::{ScopeId, ScopePath, ScopeStep, StepResult};
use std::collections::BTreeMap;

/// Results for a new run.
pub(super) struct MappedResults {
    /// In the order in which the steps were left.
    pub(super) results: Vec<ReplayedResult>,
    /// The last scope that they name or leave room for.
    pub(super) scopes_count: u64,
}

/// Maps the results of a run with the definition `from` to the definition `to`, which may be the same. The scopes get new
/// numbers.
pub(super) fn map_results(
    mut results: Vec<ReplayedResult>,
    from: &Definition,
    to: &Definition,
) -> MappedResults {
    let steps = (0..).map(StepIndex).zip(&to.steps);
    let mut mapper = ResultMapper {
        from,
        to,
        by_name: steps.map(|(index, step)| (&step.name, index)).collect(),
        first_scopes: BTreeMap::new(),
        scopes_count: 0,
    };
    // A step comes before those in its branches.
    results.sort_by_key(|replayed| replayed.scope.path.0.len());
    let mapped = results.iter().filter_map(|replayed| {
        mapper.number_scopes(replayed);
        mapper.new_result(replayed)
    });
    let mut results: Vec<_> = mapped.collect();
    results.sort_by_key(|replayed| replayed.result.order);
    MappedResults {
        results,
        scopes_count: mapper.scopes_count,
    }
}

struct ResultMapper<'d> {
    from: &'d Definition,
    to: &'d Definition,
    by_name: BTreeMap<&'d StepName, StepIndex>,
    /// For each kept result, the new scope of its first branch, by the old one.
    first_scopes: BTreeMap<ScopeNumber, ScopeNumber>,
    scopes_count: u64,
}

impl ResultMapper<'_> {
    /// The step with the same name.
    fn new_step(&self, former: StepIndex) -> Option<StepIndex> {
        self.by_name.get(&self.from.step(former).name).copied()
    }

    /// Gives numbers to the scopes that a step has opened: all its branches get one, as when it opens them.
    fn number_scopes(&mut self, replayed: &ReplayedResult) {
        let Some((former, step)) = replayed
            .result
            .first_scope
            .zip(self.new_step(replayed.step))
        else {
            return;
        };
        let count = match self.to.step(step).kind {
            StepKind::ForEach(_) => 0,
            _ => self.to.branches(step).len() as u64,
        };
        if count > 0 && self.new_scope(&replayed.scope, step).is_some() {
            let first = ScopeNumber(self.scopes_count + 1);
            self.first_scopes.insert(former, first);
            self.scopes_count += count;
        }
    }

    fn new_result(&self, replayed: &ReplayedResult) -> Option<ReplayedResult> {
        let step = self.new_step(replayed.step)?;
        let first = replayed.result.first_scope;
        Some(ReplayedResult {
            scope: self.new_scope(&replayed.scope, step)?,
            step,
            result: StepResult {
                first_scope: first.and_then(|first| self.first_scopes.get(&first).copied()),
                ..replayed.result.clone()
            },
        })
    }

    /// The new scope of a step; `None` if its enclosing steps differ.
    fn new_scope(&self, former: &ScopeId, step: StepIndex) -> Option<ScopeId> {
        let mut path = Vec::new();
        let mut block = self.to.step(step).block;
        for down in former.path.0.iter().rev() {
            let opener = self.to.block(block).opener?;
            if self.new_step(down.step) != Some(opener) {
                return None;
            }
            let position = self.to.branch_position(opener, block);
            path.push(ScopeStep {
                step: opener,
                visit: down.visit,
                position: u32::try_from(position).expect("branches are bounded"),
            });
            block = self.to.step(opener).block;
        }
        if block != BlockIndex::ROOT {
            return None;
        }
        path.reverse();
        let number = match (former.path.0.last(), path.last()) {
            (Some(before), Some(now)) => {
                let former_first = ScopeNumber(former.number.0 - u64::from(before.position));
                let first = self.first_scopes.get(&former_first)?;
                ScopeNumber(first.0 + u64::from(now.position))
            }
            _ => ScopeNumber::ROOT,
        };
        Some(ScopeId {
            number,
            path: ScopePath(path.into()),
        })
    }
}
