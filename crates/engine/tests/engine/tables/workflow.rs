//! Rows of workflows and their revisions.

use super::{Row, row};
use crate::samples;
use flotilla_engine::rows::{
    DefinitionNumber, DefinitionRecord, DefinitionSources, Definitions, Revisions,
    RevisionsByContent, VersionRecord, Versions, WorkflowCounts, WorkflowRecord, Workflows,
    WorkflowsBeingDeleted,
};

pub(super) fn rows() -> Vec<Row> {
    let version = (
        samples::namespace(),
        samples::workflow(),
        samples::version(),
    );
    let number = DefinitionNumber(4);
    vec![
        row::<Workflows>(
            (samples::namespace(), samples::workflow()),
            WorkflowRecord {
                is_enabled: true,
                latest: number,
                revisions_count: 3,
                revisions_bytes: 4_096,
            },
        ),
        row::<WorkflowCounts>(samples::namespace(), 2),
        row::<WorkflowsBeingDeleted>((samples::namespace(), samples::workflow()), ()),
        row::<Versions>(
            version,
            VersionRecord {
                newest: number,
                revisions_count: 2,
            },
        ),
        row::<Definitions>(
            number,
            DefinitionRecord {
                namespace: samples::namespace(),
                revision: 2,
                created_at_ms: 1_000,
                definition: samples::definition(),
            },
        ),
        row::<DefinitionSources>(number, "kind: Workflow".to_owned()),
        row::<Revisions>(
            (
                samples::namespace(),
                samples::workflow(),
                samples::version(),
                2,
            ),
            number,
        ),
        row::<RevisionsByContent>(
            (
                samples::namespace(),
                samples::workflow(),
                samples::version(),
                77,
                number,
            ),
            (),
        ),
    ]
}
