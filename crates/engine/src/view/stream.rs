//! Reads streams and their records (A30).

use super::is_quarantined;
use super::page::{Page, PageBudget, PageRange, Scope, page, prefix};
use crate::ids::{Namespace, StreamName, StreamNumber};
use crate::limits::READ_RECORDS_MAX;
use crate::store::{KeyRange, Order, Reader, StoreError};
use crate::stream::{RecordId, StreamPosition};
use crate::tables::{
    QuarantinedKind, RecordContent, Records, StreamNames, StreamRecord, Streams, decode_key,
    encode_key, range_from, read, visit,
};
use std::ops::ControlFlow;

/// A stream.
#[derive(Clone, Debug)]
pub struct StreamView {
    /// Its name.
    pub name: StreamName,
    /// What it was created with, where it ends and what it holds.
    pub record: StreamRecord,
    /// The id of its oldest record.
    pub first_id: Option<RecordId>,
    /// Whether it is quarantined (design rule 10).
    pub is_quarantined: bool,
}

/// A record of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordView {
    /// Its id.
    pub id: RecordId,
    /// Its partition.
    pub partition: u32,
    /// Its content.
    pub content: RecordContent,
}

/// Which records are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordRange {
    /// The first one; the tail is behind the last record.
    pub from: StreamPosition,
    /// The last one; the tail is the last record.
    pub to: StreamPosition,
    /// Those of one partition only.
    pub partition: Option<u32>,
    /// Records at most, and never more than 1000. Large records end a page sooner, but not before
    /// the first.
    pub limit: usize,
}

/// Records in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordPage {
    /// The records.
    pub records: Vec<RecordView>,
    /// Where the next read continues; after the tail, to wait there for appended records.
    pub next: RecordId,
}

/// The stream `name`.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn stream(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &StreamName,
) -> Result<Option<StreamView>, StoreError> {
    let found = find_stream(reader, namespace, name)?;
    let view = |(number, record)| view(reader, name.clone(), number, record);
    found.map(view).transpose()
}

/// The streams of a namespace by name.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn streams(
    reader: &dyn Reader,
    namespace: &Namespace,
    range: PageRange<'_>,
) -> Result<Page<StreamView>, StoreError> {
    let prefix = prefix::<StreamNames>(namespace);
    page::<StreamNames, _>(
        reader,
        &Scope::new(&prefix, range),
        |reader, (_, name), number| {
            let record = read::<Streams>(reader, &number)?;
            let view = |record| view(reader, name, number, record);
            record.map(view).transpose()
        },
    )
}

/// The records of a stream in a range, over all partitions in the order of their ids; `None` when
/// there is no such stream.
///
/// # Errors
/// [`StoreError`] if the store fails.
pub fn records(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &StreamName,
    range: &RecordRange,
) -> Result<Option<RecordPage>, StoreError> {
    let Some((number, stream)) = find_stream(reader, namespace, name)? else {
        return Ok(None);
    };
    let from = match range.from {
        StreamPosition::Id(id) => id,
        StreamPosition::Tail => stream.last_id.next(),
    };
    let to = match range.to {
        StreamPosition::Id(id) => id.min(stream.last_id),
        StreamPosition::Tail => stream.last_id,
    };
    let mut merge = Merge {
        reader,
        stream: number,
        to,
        heads: Vec::new(),
        page: RecordPage {
            records: Vec::new(),
            next: from,
        },
        budget: PageBudget::new(range.limit.min(READ_RECORDS_MAX)),
    };
    for (partition, record) in (0..).zip(&stream.partitions) {
        let is_wanted = range.partition.is_none_or(|wanted| wanted == partition);
        if let Some(front) = record.front.filter(|_| is_wanted) {
            merge.begin(partition, from.max(front))?;
        }
    }
    merge.run()?;
    Ok(Some(merge.page))
}

/// The number and record of the stream `name`.
pub(super) fn find_stream(
    reader: &dyn Reader,
    namespace: &Namespace,
    name: &StreamName,
) -> Result<Option<(StreamNumber, StreamRecord)>, StoreError> {
    let key = (namespace.clone(), name.clone());
    let Some(number) = read::<StreamNames>(reader, &key)? else {
        return Ok(None);
    };
    let record = read::<Streams>(reader, &number)?;
    Ok(record.map(|record| (number, record)))
}

fn view(
    reader: &dyn Reader,
    name: StreamName,
    number: StreamNumber,
    record: StreamRecord,
) -> Result<StreamView, StoreError> {
    let fronts = record.partitions.iter().filter_map(|one| one.front);
    let first_id = fronts.min();
    let is_quarantined = is_quarantined(reader, (QuarantinedKind::Stream, number.0))?;
    Ok(StreamView {
        name,
        record,
        first_id,
        is_quarantined,
    })
}

/// A merge of partitions: the one whose next record is the oldest is read until another has an
/// older one, so that a stream of one partition is read in one scan.
struct Merge<'a> {
    reader: &'a dyn Reader,
    stream: StreamNumber,
    to: RecordId,
    /// The next record of each partition that has one.
    heads: Vec<(RecordId, u32)>,
    page: RecordPage,
    budget: PageBudget,
}

impl Merge<'_> {
    /// Finds where a partition begins.
    fn begin(&mut self, partition: u32, from: RecordId) -> Result<(), StoreError> {
        let range = self.range(partition, from);
        if range.is_empty() {
            return Ok(());
        }
        let mut head = None;
        self.reader.scan(&range, Order::Ascending, &mut |key, _| {
            head = decode_key::<Records>(key).map(|(_, _, id)| (id, partition));
            ControlFlow::Break(())
        })?;
        self.heads.extend(head);
        Ok(())
    }

    fn run(&mut self) -> Result<(), StoreError> {
        while !self.budget.is_full() {
            self.heads.sort_unstable();
            let Some((from, partition)) = self.heads.first().copied() else {
                break;
            };
            let until = self.heads.get(1).map_or(RecordId::END, |(id, _)| *id);
            let head = self.read_run(partition, from, until)?;
            match head {
                Some(id) => self.heads[0].0 = id,
                None => {
                    self.heads.remove(0);
                }
            }
        }
        Ok(())
    }

    /// Takes the records of a partition that are older than `until`; returns the first that is not
    /// taken.
    fn read_run(
        &mut self,
        partition: u32,
        from: RecordId,
        until: RecordId,
    ) -> Result<Option<RecordId>, StoreError> {
        let mut head = None;
        let range = self.range(partition, from);
        visit::<Records>(
            self.reader,
            &range,
            Order::Ascending,
            |(_, partition, id), content| {
                if id >= until || !self.budget.take(content.size()) {
                    head = Some(id);
                    return ControlFlow::Break(());
                }
                self.page.next = id.next();
                self.page.records.push(RecordView {
                    id,
                    partition,
                    content,
                });
                ControlFlow::Continue(())
            },
        )?;
        Ok(head)
    }

    fn range(&self, partition: u32, from: RecordId) -> KeyRange {
        let place = (self.stream, partition, from);
        let mut range = range_from::<Records>(&(self.stream, partition), &place);
        let end = encode_key::<Records>(&(self.stream, partition, self.to.next()));
        range.to = range.to.min(end);
        range
    }
}
