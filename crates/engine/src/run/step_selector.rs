//! Finding the active step that a caller names (W61, W75).

use super::scope_search;
use crate::ids::{RunId, ScopePathText, StepName};
use crate::rejection::Rejection;
use crate::scope_path;
use crate::store::StoreError;
use crate::tables::{Activation, ScopePath};
use crate::turn::{LoadedRun, Turn, TurnResult};
use crate::undeliverable::Undeliverable;
use serde::{Deserialize, Serialize};

/// Names an active step of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSelector {
    /// The step; `None` for the only one that matches.
    pub step: Option<StepName>,
    /// The scope of the step; `None` for the only one.
    pub scope: Option<ScopePathText>,
    /// The visit to the step, from 1; `None` for the current one.
    pub visit: Option<u32>,
}

/// How many steps a rejection names at most.
const STEPS_SHOWN_MAX: usize = 10;

impl StepSelector {
    /// The activation of the selected step for which `fits` is true.
    ///
    /// # Errors
    /// What `none` returns for a description of the selection, if there is no such step;
    /// [`Undeliverable::ScopeNeeded`] if there are several.
    pub(super) fn find(
        &self,
        turn: &mut Turn<'_, '_>,
        run: &mut LoadedRun,
        fits: impl Fn(&mut Turn<'_, '_>, &Activation) -> Result<bool, StoreError>,
        none: impl FnOnce(String) -> Undeliverable,
    ) -> TurnResult<u64> {
        let scope = self.scope.as_ref();
        let scope = scope.map(|text| scope_search::parse(run, text));
        let scope = scope.transpose()?;
        let mut found = Vec::new();
        for number in run.active(turn)? {
            if let Some(active) = run.activation(turn, number)?.cloned()
                && self.is_about(run, &active, scope.as_ref())
                && fits(turn, &active)?
            {
                found.push(active);
            }
        }
        match &found[..] {
            [active] => Ok(active.number),
            [] => Err(Rejection::from(none(self.words())).into()),
            _ => {
                let shown = found.iter().take(STEPS_SHOWN_MAX);
                let shown: Vec<String> = shown.map(|active| describe(run, active)).collect();
                let open = shown.join(", ");
                let run_id = run.record.id.clone();
                Err(Rejection::from(Undeliverable::ScopeNeeded { run_id, open }).into())
            }
        }
    }

    /// Whether the selection can be about `run`, the last attempt at the run that the caller named. A visit is about the
    /// attempt that was named: each attempt counts its visits from 1 (W77).
    pub(super) fn is_of_attempt(&self, run: &LoadedRun, named: &RunId) -> bool {
        self.visit.is_none() || run.record.id == *named
    }

    /// The step, as the caller named it.
    fn words(&self) -> String {
        let visit = self.visit.map(|visit| format!("visit {visit} to "));
        let step = match &self.step {
            Some(step) => format!("step \"{step}\""),
            None => "a step".to_owned(),
        };
        let scope = self
            .scope
            .as_ref()
            .map(|scope| format!(" in scope \"{scope}\""));
        [visit.unwrap_or_default(), step, scope.unwrap_or_default()].concat()
    }

    fn is_about(&self, run: &LoadedRun, active: &Activation, scope: Option<&ScopePath>) -> bool {
        let name = &run.definition.definition.step(active.step).name;
        self.step.as_ref().is_none_or(|step| step == name)
            && self.visit.is_none_or(|visit| visit == active.visit)
            && scope.is_none_or(|path| *path == run.shown_scope(active).path)
    }
}

/// Names an active step for a caller.
fn describe(run: &LoadedRun, active: &Activation) -> String {
    let definition = &run.definition.definition;
    let step = &definition.step(active.step).name;
    let path = scope_path::to_text(definition, &run.shown_scope(active).path);
    match path.is_empty() {
        true => format!("\"{step}\""),
        false => format!("\"{step}\" in scope \"{path}\""),
    }
}
