//! Queries: conditions on runs as users write them (W22), such as `status = 'failed' and amount >
//! 99.5`.
//!
//! A condition compares a field with a value. The field is `workflow`, `status`, `started_at`,
//! `completed_at` or the name of a search attribute; the comparison is `=`, `!=`, `<`, `<=`, `>` or
//! `>=`; the value is a string in single quotes, a number or a time. Conditions are joined by
//! `and`. The text becomes tokens with positions, and these become the engine's [`RunQuery`]; the
//! first error is reported with a caret under it.

mod condition;
mod invalid;
mod literal;
mod parser;
mod token;

pub use invalid::QueryInvalid;

use flotilla_engine::view::RunQuery;

/// The maximum length of a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 4_096;
/// The maximum of conditions in one query.
pub const CONDITIONS_MAX: usize = 32;

/// Parses conditions on runs; an empty text has no conditions.
///
/// # Errors
/// [`QueryInvalid`] for the first error.
pub fn parse(text: &str) -> Result<RunQuery, QueryInvalid> {
    if text.len() > QUERY_BYTES_MAX {
        let message = format!(
            "expected at most {QUERY_BYTES_MAX} bytes, but there are {}",
            text.len()
        );
        return Err(QueryInvalid::new(
            text,
            QUERY_BYTES_MAX..text.len(),
            message,
        ));
    }
    parser::parse(text)
}
