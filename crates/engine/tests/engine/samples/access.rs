//! The access mode and API tokens.

use flotilla_engine::ids::{ApproverRole, Identity, TokenId, TokenName};
use flotilla_engine::rows::ReportProof;
use flotilla_engine::{
    AccessMode, Actor, Body, BootstrapToken, ClusterRole, CommandScope, CreateToken, Grant,
    InitializeAccess, NamespacePattern, NamespaceRole, RecordTokenUses, RecoverAccess, RevokeToken,
    RotateToken, SecretHash, SetAccessMode, TokenRecord,
};

pub(crate) fn api_token() -> TokenId {
    TokenId::from_bits(0x1_2345_6789_abcd)
}

pub(crate) fn secret() -> SecretHash {
    SecretHash([7; 32])
}

pub(super) fn grants() -> Vec<Grant> {
    let in_namespaces = |role, pattern| Grant::InNamespaces { role, pattern };
    vec![
        in_namespaces(NamespaceRole::Worker, NamespacePattern::All),
        in_namespaces(
            NamespaceRole::Admin,
            NamespacePattern::Tree(super::namespace()),
        ),
        in_namespaces(
            NamespaceRole::Viewer,
            NamespacePattern::One(super::namespace()),
        ),
        Grant::InCluster(ClusterRole::ClusterOperator),
    ]
}

pub(crate) fn report_proof() -> ReportProof {
    ReportProof {
        secret: 5,
        requires_mac: true,
    }
}

pub(crate) fn api_token_record() -> TokenRecord {
    TokenRecord {
        name: TokenName::new("deploy").expect("a name"),
        scope: CommandScope::Cluster,
        identity: super::identity(),
        grants: grants(),
        approves: vec![ApproverRole::new("editors").expect("a role")],
        secret: secret(),
        former_secret: Some((SecretHash([8; 32]), 2_000)),
        created_at_ms: 1_000,
        created_by: Actor::Token(api_token()),
        expires_at_ms: Some(9_000),
        revoked_at_ms: Some(3_000),
        last_used_at_ms: Some(2_000),
    }
}

/// One command of each kind, in the order of the enum.
pub(crate) fn bodies() -> Vec<Body> {
    let mut bodies = vec![
        Body::InitializeAccess(InitializeAccess {
            mode: AccessMode::Closed,
            bootstrap: Some(BootstrapToken {
                id: api_token(),
                secret: secret(),
            }),
        }),
        Body::SetAccessMode(SetAccessMode {
            mode: AccessMode::Open,
        }),
        Body::CreateToken(Box::new(CreateToken {
            id: api_token(),
            scope: CommandScope::Cluster,
            name: TokenName::new("deploy").expect("a name"),
            identity: Some(Identity::new("service:deploy").expect("an identity")),
            grants: grants(),
            approves: vec![ApproverRole::new("editors").expect("a role")],
            secret: secret(),
            ttl_ms: Some(60_000),
        })),
        Body::RotateToken(Box::new(RotateToken {
            id: api_token(),
            scope: super::namespace().into(),
            secret: secret(),
            overlap_ms: 1_000,
        })),
        Body::RevokeToken(RevokeToken {
            id: api_token(),
            scope: super::namespace().into(),
        }),
        Body::RecoverAccess(RecoverAccess {
            token: BootstrapToken {
                id: api_token(),
                secret: secret(),
            },
        }),
        Body::RecordTokenUses(RecordTokenUses {
            tokens: vec![api_token()],
        }),
    ];
    bodies.extend(super::bindings::bodies());
    bodies.extend(super::quota::bodies());
    bodies
}
