//! Bindings and blocks of subjects.

use super::access::{api_token, grants};
use flotilla_engine::ids::ApproverRole;
use flotilla_engine::{
    Actor, BindSubject, BindingRecord, BindingSubject, BlockRecord, BlockSubject, Body, BoundActor,
    CommandScope, UnbindSubject, UnblockSubject,
};

pub(crate) fn binding_subject() -> BindingSubject {
    BindingSubject::parse("cert:uri:spiffe://shop/billing").expect("a subject")
}

fn bound_actor() -> Actor {
    Actor::Bound(BoundActor {
        subject: BindingSubject::parse("oidc:corp:sub:ada").expect("a subject"),
        groups: vec![BindingSubject::parse("oidc:corp:group:editors").expect("a subject")],
        ends_at_ms: 9_000,
    })
}

pub(crate) fn binding_record() -> BindingRecord {
    BindingRecord {
        grants: grants(),
        approves: vec![ApproverRole::new("editors").expect("a role")],
        changed_at_ms: 1_000,
        changed_by: bound_actor(),
    }
}

pub(crate) fn block_record() -> BlockRecord {
    BlockRecord {
        ends_at_ms: Some(9_000),
        blocked_at_ms: 1_000,
        blocked_by: Actor::Token(api_token()),
    }
}

/// One command of each kind, in the order of the enum.
pub(crate) fn bodies() -> Vec<Body> {
    vec![
        Body::BindSubject(Box::new(BindSubject {
            subject: binding_subject(),
            scope: CommandScope::Cluster,
            grants: grants(),
            approves: vec![ApproverRole::new("editors").expect("a role")],
        })),
        Body::UnbindSubject(UnbindSubject {
            subject: binding_subject(),
            scope: super::namespace().into(),
        }),
        Body::BlockSubject(BlockSubject {
            subject: BindingSubject::parse("cert:dns:till.shop").expect("a subject"),
            ends_at_ms: Some(9_000),
        }),
        Body::UnblockSubject(UnblockSubject {
            subject: binding_subject(),
        }),
    ]
}
