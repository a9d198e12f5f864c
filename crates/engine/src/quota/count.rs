//! Counting what namespaces and trees use (X38).

use super::dimension::{DimensionKind, QuotaDimension};
use crate::ids::Namespace;
use crate::store::StoreError;
use crate::tables::{Table, TreeUsages, UsageRecord, Usages};
use crate::turn::Turn;
use smallvec::SmallVec;

/// A change of what a namespace uses.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) namespace: Namespace,
    pub(crate) dimension: QuotaDimension,
    /// By how much, up or down.
    pub(crate) by: i64,
}

/// The changes of a turn: at most one for each namespace and dimension.
pub(crate) type Changes = SmallVec<[Change; 2]>;

impl Turn<'_, '_> {
    /// Notes that the namespace uses more or less of a counted dimension than before.
    pub(crate) fn note_use(&mut self, namespace: &Namespace, dimension: QuotaDimension, by: i64) {
        assert_eq!(
            dimension.kind(),
            DimensionKind::Count,
            "only counts have counters"
        );
        if by == 0 {
            return;
        }
        let mut changes = self.use_changes().iter_mut();
        let known =
            changes.find(|change| change.dimension == dimension && change.namespace == *namespace);
        match known {
            Some(change) => change.by += by,
            None => self.use_changes().push(Change {
                namespace: namespace.clone(),
                dimension,
                by,
            }),
        }
    }

    /// As [`Turn::note_use`], for something whose size changes from `before` to `after`, in bytes.
    pub(crate) fn note_size(
        &mut self,
        namespace: &Namespace,
        dimension: QuotaDimension,
        (before, after): (u64, u64),
    ) {
        let signed = |bytes: u64| i64::try_from(bytes).expect("sizes are bounded");
        self.note_use(namespace, dimension, signed(after) - signed(before));
    }
}

/// Writes what the turn has noted: at its end, and only what differs.
pub(crate) fn write_all(turn: &mut Turn<'_, '_>) -> Result<(), StoreError> {
    for change in std::mem::take(turn.use_changes()) {
        if change.by == 0 {
            continue;
        }
        let namespace = &change.namespace;
        if change.dimension != QuotaDimension::Namespaces {
            write::<Usages>(turn, namespace, &change)?;
        }
        if namespace.is_below_root() {
            write::<TreeUsages>(turn, &namespace.tree(), &change)?;
        }
    }
    Ok(())
}

fn write<T: Table<Record = UsageRecord>>(
    turn: &mut Turn<'_, '_>,
    key: &T::Key,
    change: &Change,
) -> Result<(), StoreError> {
    let is_left = turn.edit::<T, _>(key, |usage| {
        usage.change(change.dimension, change.by);
        !usage.counts.is_empty()
    })?;
    match is_left {
        Some(true) => {}
        Some(false) => turn.delete::<T>(key),
        None => {
            let mut usage = UsageRecord::default();
            usage.change(change.dimension, change.by);
            turn.put::<T>(key, usage);
        }
    }
    Ok(())
}
