//! Conditions on runs as people write them (W22): `status = 'failed' and amount > 99.5`.
//!
//! A condition compares a field with a value: `workflow`, `status`, `started_at`, `completed_at` or a
//! search attribute by its name; `=`, `!=`, `<`, `<=`, `>`, `>=`; a string in single quotes, a number
//! or a time. Conditions are joined by `and`. Text goes to tokens that know their place, and tokens to
//! the engine's [`RunQuery`]; the first mistake is told with a caret under it.

mod condition;
mod invalid;
mod literal;
mod parser;
mod token;

pub use invalid::QueryInvalid;

use flotilla_engine::view::RunQuery;

/// The text of a query, in bytes.
pub const QUERY_BYTES_MAX: usize = 4_096;
/// Conditions of one query.
pub const CONDITIONS_MAX: usize = 32;

/// Parses conditions on runs; an empty text has none.
///
/// # Errors
/// [`QueryInvalid`] for the first mistake.
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
