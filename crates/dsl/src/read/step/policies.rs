//! What becomes of a step that is cancelled, and how its outcome is reported.

use super::Body;
use crate::read::{Context, Reported, call, tracking};
use crate::{Code, Finding};
use flotilla_engine::definition::{Call, RunTarget, Tracking};

impl<'doc> Body<'doc> {
    /// Reads what is called when the step was cancelled (W81).
    pub(super) fn on_cancel(&self, context: &mut Context<'doc>) -> Result<Option<Call>, Reported> {
        let Some(field) = &self.on_cancel else {
            return Ok(None);
        };
        let Some(kind) = self.kinds.first().filter(|kind| !kind.waits()) else {
            return call::on_cancel(field, context).map(Some);
        };
        let message = format!(
            "expected {} to have no `onCancel`, since it {}",
            self.place,
            kind.what_the_step_does()
        );
        let finding = Finding::new(Code::E100, field.key_span, message);
        let hint = "give it to a step that executes a target or waits";
        Err(context.error(finding.hint(hint)))
    }

    /// Reads whether a cancellation does not wait until the target has ended (W54).
    pub(super) fn is_abandoned(&self, context: &mut Context<'doc>) -> Result<bool, Reported> {
        match &self.cancellation {
            Some(field) => field.word(&[("wait", false), ("abandon", true)], context),
            None => Ok(false),
        }
    }

    /// Reads how the outcome of the step's action is reported.
    pub(super) fn tracking(
        &self,
        target: Option<&RunTarget>,
        context: &mut Context<'doc>,
    ) -> Result<Tracking, Reported> {
        let Some(field) = &self.tracking else {
            return Ok(Tracking::Sync);
        };
        let tracking = tracking::read(field, None, context)?;
        let hint = match target {
            Some(RunTarget::Plan(_)) => "give it to the executors of the plan",
            Some(RunTarget::Workflow { .. }) => "a child workflow reports its own end",
            Some(RunTarget::Action(_)) | None => return Ok(tracking),
        };
        let message = format!(
            "expected {} to have no `tracking`, since its target is not an action",
            self.place
        );
        let finding = Finding::new(Code::E100, field.key_span, message);
        Err(context.error(finding.hint(hint)))
    }
}
