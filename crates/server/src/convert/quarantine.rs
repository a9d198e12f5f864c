//! Converts quarantined items to messages.

use flotilla_api::v1;
use flotilla_engine::QuarantinedKind;
use flotilla_engine::view::QuarantinedView;

/// Converts a quarantined item.
pub(crate) fn message(view: QuarantinedView) -> v1::QuarantinedItem {
    let (kind, number) = view.subject;
    v1::QuarantinedItem {
        kind: kind_message(kind).into(),
        number,
        namespace: view
            .namespace
            .map_or_else(String::new, |one| one.to_string()),
        name: view.name,
        quarantined_at_ms: view.record.at_ms,
        raft_index: view.record.raft_index,
    }
}

fn kind_message(kind: QuarantinedKind) -> v1::QuarantinedKind {
    match kind {
        QuarantinedKind::Run => v1::QuarantinedKind::Run,
        QuarantinedKind::ActionRun => v1::QuarantinedKind::ActionRun,
        QuarantinedKind::Worker => v1::QuarantinedKind::Worker,
        QuarantinedKind::Schedule => v1::QuarantinedKind::Schedule,
        QuarantinedKind::Stream => v1::QuarantinedKind::Stream,
        QuarantinedKind::Group => v1::QuarantinedKind::Group,
        QuarantinedKind::Trigger => v1::QuarantinedKind::Trigger,
        QuarantinedKind::Plan => v1::QuarantinedKind::Plan,
    }
}

/// Converts the kind of a request; `None` if it is unspecified.
pub(crate) fn kind(kind: v1::QuarantinedKind) -> Option<QuarantinedKind> {
    Some(match kind {
        v1::QuarantinedKind::Unspecified => return None,
        v1::QuarantinedKind::Run => QuarantinedKind::Run,
        v1::QuarantinedKind::ActionRun => QuarantinedKind::ActionRun,
        v1::QuarantinedKind::Worker => QuarantinedKind::Worker,
        v1::QuarantinedKind::Schedule => QuarantinedKind::Schedule,
        v1::QuarantinedKind::Stream => QuarantinedKind::Stream,
        v1::QuarantinedKind::Group => QuarantinedKind::Group,
        v1::QuarantinedKind::Trigger => QuarantinedKind::Trigger,
        v1::QuarantinedKind::Plan => QuarantinedKind::Plan,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_as_it_is_written() {
        for one in QuarantinedKind::ALL {
            assert_eq!(kind(kind_message(one)), Some(one));
            let published = kind_message(one).as_str_name().to_ascii_lowercase();
            assert_eq!(published, format!("quarantined_kind_{}", one.name()));
        }
        assert_eq!(kind(v1::QuarantinedKind::Unspecified), None);
    }
}
