//! Reads JSON texts as values, one level at a time.

use super::meter::Meter;
use super::value::Slice;
use super::{Failure, Key, List, Map, Value, number};
use crate::json;
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::rc::Rc;

impl Slice {
    /// The value. Objects and arrays stay text.
    pub(super) fn to_value(&self) -> Result<Value, Failure> {
        let text = self.as_str().trim_matches(json::is_space);
        Ok(match text.as_bytes().first() {
            Some(b'{') => Value::Map(Map::Json(self.part(text))),
            Some(b'[') => Value::List(List::Json(self.part(text))),
            Some(b'"') => Value::String(json::as_string(text).unwrap_or_default().into()),
            Some(b't') => Value::Bool(true),
            Some(b'f') => Value::Bool(false),
            Some(b'-' | b'0'..=b'9') => number::read(text)?,
            _ => Value::Null,
        })
    }
}

impl List {
    /// The elements.
    pub(super) fn elements(&self, meter: &mut Meter) -> Result<Rc<Vec<Value>>, Failure> {
        let array = match self {
            Self::Made(elements) => return Ok(elements.clone()),
            Self::Json(array) => array,
        };
        meter.spend_bytes(array.as_str().len())?;
        let mut elements = Vec::new();
        for element in json::elements(array.as_str()) {
            meter.spend(1)?;
            elements.push(array.part(element).to_value()?);
        }
        Ok(Rc::new(elements))
    }

    /// The element at a position.
    pub(super) fn element(
        &self,
        position: usize,
        meter: &mut Meter,
    ) -> Result<Option<Value>, Failure> {
        match self {
            Self::Made(elements) => Ok(elements.get(position).cloned()),
            Self::Json(array) => {
                meter.spend_bytes(array.as_str().len())?;
                let element = json::elements(array.as_str()).nth(position);
                element
                    .map(|element| array.part(element).to_value())
                    .transpose()
            }
        }
    }

    /// The number of elements.
    pub(super) fn len(&self, meter: &mut Meter) -> Result<usize, Failure> {
        match self {
            Self::Made(elements) => Ok(elements.len()),
            Self::Json(array) => {
                meter.spend_bytes(array.as_str().len())?;
                Ok(json::elements(array.as_str()).count())
            }
        }
    }
}

impl Map {
    /// The entries, in the byte order of their keys. Of equal keys the last one counts.
    pub(super) fn entries(&self, meter: &mut Meter) -> Result<Rc<BTreeMap<Key, Value>>, Failure> {
        let object = match self {
            Self::Made(entries) => return Ok(entries.clone()),
            Self::Json(object) => object,
        };
        meter.spend_bytes(object.as_str().len())?;
        let mut entries = BTreeMap::new();
        for (key, value) in json::fields(object.as_str()) {
            meter.spend(1)?;
            let key = Key::String(SmolStr::new(json::key_name(key)));
            entries.insert(key, object.part(value).to_value()?);
        }
        Ok(Rc::new(entries))
    }

    /// The value at a key.
    pub(super) fn value(&self, key: &Key, meter: &mut Meter) -> Result<Option<Value>, Failure> {
        match (self, key) {
            (Self::Made(entries), _) => Ok(entries.get(key).cloned()),
            (Self::Json(object), Key::String(name)) => {
                meter.spend_bytes(object.as_str().len())?;
                let value = json::field(object.as_str(), name);
                value.map(|value| object.part(value).to_value()).transpose()
            }
            (Self::Json(_), Key::Bool(_) | Key::Int(_) | Key::Uint(_)) => Ok(None),
        }
    }

    /// Whether a key exists.
    pub(super) fn has(&self, key: &Key, meter: &mut Meter) -> Result<bool, Failure> {
        match (self, key) {
            (Self::Made(entries), _) => Ok(entries.contains_key(key)),
            (Self::Json(object), Key::String(name)) => {
                meter.spend_bytes(object.as_str().len())?;
                Ok(json::field(object.as_str(), name).is_some())
            }
            (Self::Json(_), Key::Bool(_) | Key::Int(_) | Key::Uint(_)) => Ok(false),
        }
    }

    /// The number of entries.
    pub(super) fn len(&self, meter: &mut Meter) -> Result<usize, Failure> {
        Ok(self.entries(meter)?.len())
    }
}
