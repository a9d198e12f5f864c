//! The exercise of a next engine version (ADR 0025): a node that knows version 2, for the test of
//! rolling upgrades.
//!
//! A build with debug assertions reads `FLO_EXERCISE`, whose number is the mark that this node
//! sets; any other build knows only this release's version.

use flotilla_engine::definition::Definition;
use flotilla_engine::{CreateNamespace, ENGINE_VERSION};

/// A definition whose text has this line carries the mark.
#[cfg(debug_assertions)]
const MARKED: &str = "# exercise";

/// The newest engine version that this node knows.
pub(crate) fn engine_version() -> u32 {
    #[cfg(debug_assertions)]
    if mark().is_some() {
        tracing::warn!("this node knows the engine version of the exercise");
        return flotilla_engine::ENGINE_VERSION_EXERCISE;
    }
    ENGINE_VERSION
}

/// Marks the definition if its text asks for it, whatever the agreed engine version.
#[cfg_attr(
    not(debug_assertions),
    expect(unused_variables, reason = "no mark can be made")
)]
pub(crate) fn mark_definition(definition: &mut Definition, text: &str) {
    #[cfg(debug_assertions)]
    if text.lines().any(|line| line == MARKED) {
        definition.extensions.mark = mark();
    }
}

/// Marks the command if the cluster has agreed on `engine_version`.
#[cfg_attr(
    not(debug_assertions),
    expect(unused_variables, reason = "no mark can be made")
)]
pub(crate) fn create_namespace(engine_version: u32) -> CreateNamespace {
    #[cfg(debug_assertions)]
    if engine_version >= flotilla_engine::ENGINE_VERSION_EXERCISE {
        return CreateNamespace { mark: mark() };
    }
    CreateNamespace::default()
}

#[cfg(debug_assertions)]
fn mark() -> Option<flotilla_engine::Mark> {
    let number = std::env::var("FLO_EXERCISE").ok()?;
    let number = number.parse();
    Some(flotilla_engine::Mark(
        number.expect("FLO_EXERCISE is a number"),
    ))
}
