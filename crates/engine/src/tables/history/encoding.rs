//! The encoding of events, which are most of what a run writes: a byte says which parts an event has, and the others take
//! no bytes.

use super::{Event, EventKind};
use crate::tables::ScopeId;
use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeTuple;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The scope is below the run.
const HAS_SCOPE: u8 = 1;
/// It is about a step.
const HAS_STEP: u8 = 1 << 1;
/// The visit is another than what [`common_visit`] says.
const HAS_VISIT: u8 = 1 << 2;
/// It is about an activation.
const HAS_ACTIVATION: u8 = 1 << 3;
const PARTS_ALL: u8 = HAS_SCOPE | HAS_STEP | HAS_VISIT | HAS_ACTIVATION;

/// The largest number of encoded values: which parts there are, the four parts, and the kind.
const VALUES_MAX: usize = 6;

/// The visit of most events.
fn common_visit(parts: u8) -> u32 {
    u32::from(parts & HAS_STEP != 0)
}

/// Which parts the event has.
fn parts(event: &Event) -> u8 {
    let flag = |has: bool, part: u8| if has { part } else { 0 };
    let parts = flag(event.scope != ScopeId::default(), HAS_SCOPE)
        | flag(event.step.is_some(), HAS_STEP)
        | flag(event.activation.is_some(), HAS_ACTIVATION);
    parts | flag(event.visit != common_visit(parts), HAS_VISIT)
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = parts(self);
        let mut values = serializer.serialize_tuple(VALUES_MAX)?;
        values.serialize_element(&parts)?;
        if parts & HAS_SCOPE != 0 {
            values.serialize_element(&self.scope)?;
        }
        if let Some(step) = &self.step {
            values.serialize_element(step)?;
        }
        if parts & HAS_VISIT != 0 {
            values.serialize_element(&self.visit)?;
        }
        if let Some(activation) = &self.activation {
            values.serialize_element(activation)?;
        }
        values.serialize_element(&self.kind)?;
        values.end()
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_tuple(VALUES_MAX, EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = Event;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an event")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Event, A::Error> {
        let parts: u8 = next(&mut values)?;
        if parts & !PARTS_ALL != 0 {
            let message = format!("expected parts of an event, but found {parts:#b}");
            return Err(A::Error::custom(message));
        }
        Ok(Event {
            scope: next_if(parts & HAS_SCOPE != 0, &mut values)?.unwrap_or_default(),
            step: next_if(parts & HAS_STEP != 0, &mut values)?,
            visit: next_if(parts & HAS_VISIT != 0, &mut values)?
                .unwrap_or_else(|| common_visit(parts)),
            activation: next_if(parts & HAS_ACTIVATION != 0, &mut values)?,
            kind: next::<EventKind, _>(&mut values)?,
        })
    }
}

fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(values: &mut A) -> Result<T, A::Error> {
    let value = values.next_element()?;
    value.ok_or_else(|| A::Error::custom("expected more of an event"))
}

fn next_if<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(
    is_there: bool,
    values: &mut A,
) -> Result<Option<T>, A::Error> {
    match is_there {
        true => next(values).map(Some),
        false => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode, encode};
    use crate::definition::StepIndex;
    use crate::ids::ScopeNumber;

    #[test]
    fn every_combination_of_parts_survives_the_round_trip() {
        let inner = ScopeId {
            number: ScopeNumber(3),
            ..ScopeId::default()
        };
        let mut lengths = Vec::new();
        for scope in [ScopeId::default(), inner] {
            for step in [None, Some(StepIndex(7))] {
                for visit in [0, 1, 2] {
                    for activation in [None, Some(9)] {
                        let scope = scope.clone();
                        let event = Event {
                            scope,
                            step,
                            visit,
                            activation,
                            kind: EventKind::StepStarted,
                        };
                        let bytes = encode(&event);
                        assert_eq!(decode::<Event>(&bytes).expect("just encoded"), event);
                        lengths.push(bytes.len());
                    }
                }
            }
        }
        // The format, the parts and the kind; and all parts of an event.
        assert_eq!(
            (lengths.iter().min(), lengths.iter().max()),
            (Some(&3), Some(&8))
        );
    }

    #[test]
    fn unknown_parts_are_refused() {
        let event = Event {
            scope: ScopeId::default(),
            step: None,
            visit: 0,
            activation: None,
            kind: EventKind::RunBegan,
        };
        let mut bytes = encode(&event);
        bytes[1] = PARTS_ALL + 1;
        assert!(decode::<Event>(&bytes).is_err());
    }
}
