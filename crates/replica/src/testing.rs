//! Test support that several modules share.

use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::json::Json;
use flotilla_engine::{Admission, Body, Command, InvokeAction, SetActionEnabled};

/// A command of this admission class.
pub(crate) fn command(admission: Admission) -> Command {
    let name = ActionName::new("pack").expect("a legal name");
    let body = match admission {
        Admission::Intake => Body::InvokeAction(InvokeAction {
            name,
            input: Json::null(),
            priority: 10,
            delay_ms: 0,
            labels: std::collections::BTreeMap::new(),
            idempotency_key: None,
        }),
        Admission::Progress => Body::SetActionEnabled(SetActionEnabled {
            name,
            is_enabled: true,
        }),
    };
    body.into_command(Namespace::default_namespace())
}
