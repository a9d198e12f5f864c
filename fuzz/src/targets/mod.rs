//! The table of targets: one file each.

mod cron;
mod definition;
mod entry;
mod expression;
mod identifier;
mod jwt;
mod message;
mod module;
mod path;
mod place;
mod query;
mod record;
mod schema;

use crate::target::Target;

/// Every target, in order of name.
pub const TARGETS: &[Target] = &[
    cron::TARGET,
    definition::TARGET,
    entry::TARGET,
    expression::TARGET,
    identifier::TARGET,
    jwt::TARGET,
    message::TARGET,
    module::TARGET,
    path::TARGET,
    query::TARGET,
    record::TARGET,
    schema::TARGET,
];

/// The target called `name`.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
