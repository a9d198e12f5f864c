//! The access mode and API tokens.

use super::{Row, row};
use crate::samples;
use flotilla_engine::rows::{
    Access, AccessRecord, BindingCounts, Bindings, BindingsByScope, BlockedSubjectCount,
    BlockedSubjects, BlocksEnding, TokenCounts, TokenSecrets, Tokens, TokensByScope, TokensEnding,
};
use flotilla_engine::{AccessMode, CommandScope};

pub(super) fn rows() -> Vec<Row> {
    let (token, cluster) = (samples::api_token(), CommandScope::Cluster);
    let subject = samples::bindings::binding_subject();
    vec![
        row::<Access>(
            (),
            AccessRecord {
                mode: AccessMode::Closed,
                revision: 3,
            },
        ),
        row::<Tokens>(token, samples::api_token_record()),
        row::<TokensByScope>((cluster.clone(), token), ()),
        row::<TokenSecrets>(samples::secret().0, token),
        row::<TokenCounts>(cluster.clone(), 2),
        row::<TokensEnding>((cluster.clone(), 3_000, token), ()),
        row::<Bindings>(
            (subject.clone(), cluster.clone()),
            samples::bindings::binding_record(),
        ),
        row::<BindingsByScope>((cluster.clone(), subject.clone()), ()),
        row::<BindingCounts>(cluster, 2),
        row::<BlockedSubjects>(subject.clone(), samples::bindings::block_record()),
        row::<BlockedSubjectCount>((), 2),
        row::<BlocksEnding>((3_000, subject), ()),
    ]
}
