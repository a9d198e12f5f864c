//! Quotas: how much of the cluster a namespace or a tree of namespaces may use (X37–X40).
//!
//! A command that begins new work checks the quotas of its namespace and of its tree before it does anything else: rates
//! first, then counts. It is rejected if one does not suffice, and nothing of it is counted. Everything else is never
//! refused, but counted: so more may be in use than a limit allows.
//!
//! Counters are kept for all namespaces, whether or not they have limits, so a limit holds from the entry on that sets it.
//! A turn notes what it adds and removes, and writes the sums at its end. Rates are followed only where they are limited.
//! A cluster without quotas therefore pays for one counter row per namespace and entry (ADR 0055).

mod check;
mod command;
mod count;
mod dimension;
mod foresee;
mod lifetime;
mod rows;
mod scope;
mod set;

pub use dimension::{DimensionKind, QuotaDimension};
pub use scope::QuotaScope;
pub use set::SetQuota;

pub(crate) use check::{Need, check, refusal, spend};
pub(crate) use command::{admit_command, spend_command};
pub(crate) use count::{Changes, write_all};
pub(crate) use foresee::foresee;
pub(crate) use lifetime::{begin, check_room_in_tree, end};
pub(crate) use rows::usages;
