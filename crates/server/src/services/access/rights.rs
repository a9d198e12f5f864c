//! The grants and approver roles in requests (X17, W61).

use crate::errors::Refusal;
use crate::request;
use flotilla_engine::ids::ApproverRole;
use flotilla_engine::limits::{TOKEN_APPROVES_MAX, TOKEN_GRANTS_MAX};
use flotilla_engine::{AccessRejection, Grant};

/// Approver roles, as a request has them.
pub(super) fn approves(roles: Vec<String>) -> Result<Vec<ApproverRole>, Refusal> {
    if roles.len() > TOKEN_APPROVES_MAX {
        let count = roles.len() as u64;
        return Err(AccessRejection::TokenApprovesInvalid { count }.into());
    }
    let roles = roles.into_iter();
    roles
        .map(|role| request::name("approves", ApproverRole::new(role)))
        .collect()
}

/// Grants, as a request has them.
pub(super) fn grants(texts: &[String]) -> Result<Vec<Grant>, Refusal> {
    if texts.len() > TOKEN_GRANTS_MAX {
        let count = texts.len() as u64;
        return Err(AccessRejection::TokenGrantsInvalid { count }.into());
    }
    let parsed = texts.iter().map(|text| Grant::parse(text));
    let grants: Result<Vec<Grant>, _> = parsed.collect();
    grants.map_err(|error| {
        let hint = "roles in namespaces are viewer, reader, operator, editor, worker and admin, as `viewer@shop`; in the cluster, \
                    cluster-viewer, backup, cluster-operator and cluster-admin";
        Refusal::invalid("grants", error.to_string()).with_hint(hint)
    })
}
