//! Writes values as JSON texts.

use super::meter::Meter;
use super::{Failure, Key, List, Map, Value};
use crate::json::{self, Json, quote};
use crate::limits::{JSON_DEPTH_MAX, PAYLOAD_BYTES_MAX};
use std::collections::BTreeMap;
use std::fmt::Write as _;

impl Value {
    /// The value as JSON text: numbers, texts, lists and maps as such, timestamps and durations as texts, bytes in
    /// base64, types by name.
    ///
    /// # Errors
    /// If the text is larger than a payload, or nests deeper than one.
    pub fn to_json(&self) -> Result<Json, Failure> {
        self.write(&mut Meter::default())
    }

    /// As [`Self::to_json`], with what it costs added to a meter.
    pub(crate) fn write(&self, meter: &mut Meter) -> Result<Json, Failure> {
        self.write_in(Form::Stored, meter)
    }

    /// The value as canonical JSON text: equal values have equal texts, since keys are in their byte order and nothing
    /// stands between the tokens.
    pub(crate) fn write_canonical(&self, meter: &mut Meter) -> Result<Json, Failure> {
        self.write_in(Form::Canonical, meter)
    }

    fn write_in(&self, form: Form, meter: &mut Meter) -> Result<Json, Failure> {
        let mut writer = Writer {
            out: String::new(),
            form,
            meter,
        };
        writer.value(self, 0)?;
        writer.meter.spend_bytes(writer.out.len())?;
        if json::depth(&writer.out) > JSON_DEPTH_MAX {
            return Err(too_deep());
        }
        Ok(Json::from_checked(writer.out))
    }
}

/// How values from payloads are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As they are stored.
    Stored,
    /// In one way for all equal values.
    Canonical,
}

struct Writer<'m> {
    out: String,
    form: Form,
    meter: &'m mut Meter,
}

fn too_deep() -> Failure {
    Failure::new(format!(
        "the value nests objects and arrays deeper than {JSON_DEPTH_MAX} levels"
    ))
}

impl Writer<'_> {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Failure> {
        if depth > JSON_DEPTH_MAX {
            return Err(too_deep());
        }
        if self.out.len() > PAYLOAD_BYTES_MAX {
            return Err(Failure::new(format!(
                "the value has more than {PAYLOAD_BYTES_MAX} bytes"
            )));
        }
        self.meter.spend(1)?;
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Bool(value) => self.display(value),
            Value::Int(value) => self.display(value),
            Value::Uint(value) => self.display(value),
            Value::Double(value) => self.display(value),
            Value::String(text) => quote(text, &mut self.out),
            Value::Bytes(bytes) => self.base64(bytes),
            Value::Timestamp(time) => quote(&time.to_string(), &mut self.out),
            Value::Duration(span) => quote(&span.to_string(), &mut self.out),
            Value::Type(of) => quote(of.name(), &mut self.out),
            Value::List(List::Json(array)) if self.form == Form::Stored => {
                self.out.push_str(array.text().as_str());
            }
            Value::Map(Map::Json(object)) if self.form == Form::Stored => {
                self.out.push_str(object.text().as_str());
            }
            Value::List(list) => {
                let elements = list.elements(self.meter)?;
                self.list(&elements, depth)?;
            }
            Value::Map(map) => {
                let entries = map.entries(self.meter)?;
                self.map(&entries, depth)?;
            }
        }
        Ok(())
    }

    fn map(&mut self, entries: &BTreeMap<Key, Value>, depth: usize) -> Result<(), Failure> {
        self.out.push('{');
        for (position, (key, value)) in entries.iter().enumerate() {
            self.comma(position);
            self.key(key);
            self.value(value, depth + 1)?;
        }
        self.out.push('}');
        Ok(())
    }

    fn list(&mut self, elements: &[Value], depth: usize) -> Result<(), Failure> {
        self.out.push('[');
        for (position, element) in elements.iter().enumerate() {
            self.comma(position);
            self.value(element, depth + 1)?;
        }
        self.out.push(']');
        Ok(())
    }

    fn key(&mut self, key: &Key) {
        match key {
            Key::String(key) => quote(key, &mut self.out),
            Key::Bool(key) => quote(&key.to_string(), &mut self.out),
            Key::Int(key) => quote(&key.to_string(), &mut self.out),
            Key::Uint(key) => quote(&key.to_string(), &mut self.out),
        }
        self.out.push(':');
    }

    fn comma(&mut self, position: usize) {
        if position > 0 {
            self.out.push(',');
        }
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        write!(self.out, "{value}").expect("a String takes every text");
    }

    /// RFC 4648, with padding.
    fn base64(&mut self, bytes: &[u8]) {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        self.out.push('"');
        for chunk in bytes.chunks(3) {
            let byte = |position: usize| u32::from(chunk.get(position).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for place in 0..4 {
                if place <= chunk.len() {
                    let index = (bits >> (18 - 6 * place)) & 63;
                    self.out.push(char::from(ALPHABET[index as usize]));
                } else {
                    self.out.push('=');
                }
            }
        }
        self.out.push('"');
    }
}
