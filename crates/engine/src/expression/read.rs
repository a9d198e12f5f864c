//! Reads JSON texts as values, one level at a time.

use super::meter::Meter;
use super::value::{Container, Read, Slice};
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
            Some(b'{') => Value::Map(Map::Json(Container::new(self.part(text)))),
            Some(b'[') => Value::List(List::Json(Container::new(self.part(text)))),
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
        match self {
            Self::Made(elements) => Ok(elements.clone()),
            Self::Json(array) => {
                let elements = elements_of(array, meter)?;
                meter.spend(elements.len())?;
                let elements: Result<Vec<Value>, Failure> = elements.iter().cloned().collect();
                Ok(Rc::new(elements?))
            }
        }
    }

    /// The element at a position.
    pub(super) fn element(
        &self,
        position: usize,
        meter: &mut Meter,
    ) -> Result<Option<Value>, Failure> {
        match self {
            Self::Made(elements) => Ok(elements.get(position).cloned()),
            Self::Json(array) if array.is_to_be_scanned() => {
                let text = array.text();
                meter.spend_bytes(text.as_str().len())?;
                let element = json::elements(text.as_str()).nth(position);
                element
                    .map(|element| text.part(element).to_value())
                    .transpose()
            }
            Self::Json(array) => {
                let elements = elements_of(array, meter)?;
                elements.get(position).cloned().transpose()
            }
        }
    }

    /// The number of elements.
    pub(super) fn len(&self, meter: &mut Meter) -> Result<usize, Failure> {
        match self {
            Self::Made(elements) => Ok(elements.len()),
            Self::Json(array) => Ok(elements_of(array, meter)?.len()),
        }
    }
}

/// The elements of an array, each read once.
fn elements_of(array: &Container<Vec<Read>>, meter: &mut Meter) -> Result<Rc<Vec<Read>>, Failure> {
    array.content(|| {
        let text = array.text();
        meter.spend_bytes(text.as_str().len())?;
        let mut elements = Vec::new();
        for element in json::elements(text.as_str()) {
            meter.spend(1)?;
            elements.push(text.part(element).to_value());
        }
        Ok(elements)
    })
}

/// The entries of an object, each read once.
fn entries_of(
    object: &Container<BTreeMap<Key, Read>>,
    meter: &mut Meter,
) -> Result<Rc<BTreeMap<Key, Read>>, Failure> {
    object.content(|| {
        let text = object.text();
        meter.spend_bytes(text.as_str().len())?;
        let mut entries = BTreeMap::new();
        for (key, value) in json::fields(text.as_str()) {
            let key = Key::String(SmolStr::new(json::key_name(key)));
            spend_search(&key, entries.len(), meter)?;
            entries.insert(key, text.part(value).to_value());
        }
        Ok(entries)
    })
}

impl Map {
    /// The entries, in the byte order of their keys. Of equal keys the last one counts.
    pub(super) fn entries(&self, meter: &mut Meter) -> Result<Rc<BTreeMap<Key, Value>>, Failure> {
        match self {
            Self::Made(entries) => Ok(entries.clone()),
            Self::Json(object) => {
                let entries = entries_of(object, meter)?;
                meter.spend(entries.len())?;
                let entry = |(key, value): (&Key, &Read)| Ok((key.clone(), value.clone()?));
                let entries: Result<BTreeMap<Key, Value>, Failure> =
                    entries.iter().map(entry).collect();
                Ok(Rc::new(entries?))
            }
        }
    }

    /// The keys, in their byte order.
    pub(super) fn keys(&self, meter: &mut Meter) -> Result<Vec<Value>, Failure> {
        match self {
            Self::Made(entries) => keys_of(entries, meter),
            Self::Json(object) => keys_of(&*entries_of(object, meter)?, meter),
        }
    }

    /// The value at a key.
    pub(super) fn value(&self, key: &Key, meter: &mut Meter) -> Result<Option<Value>, Failure> {
        self.read(key, meter)?.transpose()
    }

    /// Whether a key exists.
    pub(super) fn has(&self, key: &Key, meter: &mut Meter) -> Result<bool, Failure> {
        Ok(self.read(key, meter)?.is_some())
    }

    fn read(&self, key: &Key, meter: &mut Meter) -> Result<Option<Read>, Failure> {
        match (self, key) {
            (Self::Made(entries), _) => {
                spend_search(key, entries.len(), meter)?;
                Ok(entries.get(key).cloned().map(Ok))
            }
            (Self::Json(object), Key::String(name)) if object.is_to_be_scanned() => {
                let text = object.text();
                meter.spend_bytes(text.as_str().len() + name.len())?;
                let value = json::field(text.as_str(), name);
                Ok(value.map(|value| text.part(value).to_value()))
            }
            (Self::Json(object), _) => {
                let entries = entries_of(object, meter)?;
                spend_search(key, entries.len(), meter)?;
                Ok(entries.get(key).cloned())
            }
        }
    }

    /// The number of entries.
    pub(super) fn len(&self, meter: &mut Meter) -> Result<usize, Failure> {
        match self {
            Self::Made(entries) => Ok(entries.len()),
            Self::Json(object) => Ok(entries_of(object, meter)?.len()),
        }
    }
}

fn keys_of<V>(entries: &BTreeMap<Key, V>, meter: &mut Meter) -> Result<Vec<Value>, Failure> {
    meter.spend(entries.len())?;
    Ok(entries.keys().map(Key::to_value).collect())
}

/// Adds what a search for a key costs: it is compared with about log₂ of the entries.
pub(super) fn spend_search(
    key: &Key,
    entries_count: usize,
    meter: &mut Meter,
) -> Result<(), Failure> {
    let comparisons = (entries_count + 1).ilog2() as usize + 1;
    meter.spend(1)?;
    meter.spend_bytes(key.bytes().saturating_mul(comparisons))
}
