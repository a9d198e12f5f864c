//! Test support that several modules share.

use crate::clock::{StampClock, SystemClock};
use crate::network::local::{Local, LocalName};
use flotilla_engine::ids::{ActionName, Namespace};
use flotilla_engine::json::Json;
use flotilla_engine::{Admission, Body, Command, InvokeAction, SetActionEnabled};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The cluster of [`local`].
pub(crate) const CLUSTER: &str = "cluster";

/// A node of the cluster [`CLUSTER`].
pub(crate) fn local(node_id: u64) -> Local {
    let name = LocalName {
        node_id,
        incarnation: 1,
        client_address: String::new(),
        version: String::new(),
        engine_version: 1,
        election_ms: 300,
        formation_requirements: String::new(),
        hosts: BTreeSet::new(),
    };
    let clock = StampClock::new(Arc::new(SystemClock::default()), node_id);
    let local = Local::new(name, Arc::new(clock));
    local.enter(CLUSTER.to_owned());
    local
}

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
