//! Validates the names in stream requests: groups, positions, records.

use crate::errors::Refusal;
use crate::request;
use flotilla_engine::ids::{GroupName, StreamName};
use flotilla_engine::limits::READ_RECORDS_MAX;
use flotilla_engine::{GroupRef, RecordId, RecordIdInvalid, StreamPosition};

/// The group that a request names.
pub(super) fn group(stream: String, group: String) -> Result<GroupRef, Refusal> {
    Ok(GroupRef {
        stream: request::name("stream", StreamName::new(stream))?,
        group: request::name("group", GroupName::new(group))?,
    })
}

/// A position in a stream; empty means `default`.
pub(super) fn position(
    text: &str,
    field: &'static str,
    default: StreamPosition,
) -> Result<StreamPosition, Refusal> {
    if text.is_empty() {
        return Ok(default);
    }
    text.parse().map_err(|error| invalid(field, &error))
}

/// A record's id.
pub(super) fn record_id(text: &str, field: &'static str) -> Result<RecordId, Refusal> {
    text.parse().map_err(|error| invalid(field, &error))
}

/// 1 to 1000 record ids.
pub(super) fn record_ids(texts: &[String]) -> Result<Vec<RecordId>, Refusal> {
    if !(1..=READ_RECORDS_MAX).contains(&texts.len()) {
        let message = format!(
            "expected 1 to {READ_RECORDS_MAX} record ids, but found {}",
            texts.len()
        );
        return Err(Refusal::invalid("ids", message));
    }
    texts.iter().map(|text| record_id(text, "ids")).collect()
}

fn invalid(field: &'static str, error: &RecordIdInvalid) -> Refusal {
    Refusal::invalid(field, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_an_id_or_the_tail_or_left_out() {
        let start = StreamPosition::Id(RecordId::START);
        assert_eq!(position("", "start", start), Ok(start));
        assert_eq!(position("$", "start", start), Ok(StreamPosition::Tail));
        assert!(position("now", "start", start).is_err());
    }

    #[test]
    fn a_call_names_1_to_1000_records() {
        let ids = |count| vec!["7-0".to_owned(); count];
        assert!(record_ids(&ids(0)).is_err());
        assert_eq!(record_ids(&ids(1_000)).map(|ids| ids.len()), Ok(1_000));
        assert!(record_ids(&ids(1_001)).is_err());
        assert!(record_ids(&["7".to_owned()]).is_err());
    }
}
