//! Messages to JSON.

use super::depth::is_too_deep;
use super::{BASE64_SUFFIX, FieldForm, form_of, is_in_json, names};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{
    Cardinality, DynamicMessage, FieldDescriptor, Kind, MapKey, ReflectMessage, Value,
};
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// The message as JSON text.
///
/// # Errors
/// A number is not finite, which JSON cannot represent.
pub fn to_json(message: &DynamicMessage) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&Message(message))
}

/// The JSON of an absent value.
const NULL: &[u8] = b"null";

struct Message<'a>(&'a DynamicMessage);

/// One value that is not `bytes`, and its field.
struct Single<'a>(&'a FieldDescriptor, &'a Value);

/// The values of a repeated field.
struct List<'a>(&'a FieldDescriptor, &'a [Value]);

/// The values of a map.
struct Map<'a>(&'a FieldDescriptor, &'a HashMap<MapKey, Value>);

/// Bytes in their JSON form.
enum Payload<'a> {
    Absent,
    Json(&'a RawValue),
    Base64(String),
}

impl<'a> Payload<'a> {
    /// JSON, if it is exactly the bytes and readers can be expected to parse it.
    fn of(bytes: &'a [u8]) -> Self {
        let json: Option<&RawValue> = serde_json::from_slice(bytes).ok();
        let json = json.filter(|json| json.get().len() == bytes.len() && !is_too_deep(json.get()));
        json.map_or_else(|| Self::Base64(STANDARD.encode(bytes)), Self::Json)
    }

    /// The payload of a field. Empty bytes are absent if the field does not distinguish empty from unset.
    fn of_field(field: &FieldDescriptor, bytes: &'a [u8]) -> Self {
        if bytes.is_empty() && !field.supports_presence() {
            return Self::Absent;
        }
        match form_of(field) {
            // In JSON, `null` would stand for an absent value.
            _ if bytes == NULL && !field.supports_presence() => {
                Self::Base64(STANDARD.encode(bytes))
            }
            FieldForm::Binary => Self::Base64(STANDARD.encode(bytes)),
            _ => Self::of(bytes),
        }
    }

    /// The suffix of the name of its field in JSON.
    fn suffix(&self) -> &'static str {
        match self {
            Self::Absent | Self::Json(_) => "",
            Self::Base64(_) => BASE64_SUFFIX,
        }
    }
}

impl Serialize for Payload<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Absent => serializer.serialize_none(),
            Self::Json(json) => json.serialize(serializer),
            Self::Base64(text) => serializer.serialize_str(text),
        }
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let descriptor = self.0.descriptor();
        let mut object = serializer.serialize_map(None)?;
        for field in descriptor.fields().filter(is_in_json) {
            let value = self.0.get_field(&field);
            if form_of(&field) == FieldForm::Flattened {
                let is_field = |name: &str| descriptor.get_field_by_name(name).is_some();
                let members = value
                    .as_bytes()
                    .map_or(BTreeMap::new(), |bytes| members(bytes));
                for (name, member) in members.iter().filter(|(name, _)| !is_field(name)) {
                    object.serialize_entry(name, member)?;
                }
            } else {
                self.serialize_field(&mut object, &field, &value)?;
            }
        }
        object.end()
    }
}

impl Message<'_> {
    fn serialize_field<M: SerializeMap>(
        &self,
        object: &mut M,
        field: &FieldDescriptor,
        value: &Value,
    ) -> Result<(), M::Error> {
        let name = field.name();
        if field.supports_presence() && !self.0.has_field(field) {
            return object.serialize_entry(name, &());
        }
        match value {
            Value::List(values) => object.serialize_entry(name, &List(field, values)),
            Value::Map(values) => object.serialize_entry(name, &Map(field, values)),
            Value::Bytes(bytes) => {
                let payload = Payload::of_field(field, bytes);
                let name = format!("{name}{}", payload.suffix());
                object.serialize_entry(&name, &payload)
            }
            single => object.serialize_entry(name, &Single(field, single)),
        }
    }
}

/// The members of the object in these bytes.
fn members(bytes: &[u8]) -> BTreeMap<Cow<'_, str>, &RawValue> {
    // Bytes that are not an object have no members.
    serde_json::from_slice(bytes).unwrap_or_default()
}

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|value| Single(self.0, value)))
    }
}

impl Serialize for Map<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Kind::Message(entry) = self.0.kind() else {
            return Err(S::Error::custom("the field is not a map"));
        };
        let field = entry.map_entry_value_field();
        // In a stable order.
        let values: BTreeMap<String, &Value> = self
            .1
            .iter()
            .map(|(key, value)| (key_text(key), value))
            .collect();
        let mut object = serializer.serialize_map(Some(values.len()))?;
        for (key, value) in values {
            match value {
                Value::Bytes(bytes) => object.serialize_entry(&key, &Payload::of(bytes))?,
                single => object.serialize_entry(&key, &Single(&field, single))?,
            }
        }
        object.end()
    }
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::String(text) => text.clone(),
        MapKey::Bool(flag) => flag.to_string(),
        MapKey::I32(number) => number.to_string(),
        MapKey::I64(number) => number.to_string(),
        MapKey::U32(number) => number.to_string(),
        MapKey::U64(number) => number.to_string(),
    }
}

impl Serialize for Single<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(field, value) = self;
        match value {
            Value::Bool(flag) => serializer.serialize_bool(*flag),
            Value::I32(number) => serializer.serialize_i32(*number),
            Value::I64(number) => serializer.serialize_i64(*number),
            Value::U32(number) => serializer.serialize_u32(*number),
            Value::U64(number) if form_of(field) == FieldForm::NumberAsString => {
                serializer.collect_str(number)
            }
            Value::U64(number) => serializer.serialize_u64(*number),
            Value::F32(number) if number.is_finite() => serializer.serialize_f32(*number),
            Value::F64(number) if number.is_finite() => serializer.serialize_f64(*number),
            Value::F32(_) | Value::F64(_) => Err(S::Error::custom("a number is not finite")),
            Value::String(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => Payload::of(bytes).serialize(serializer),
            Value::EnumNumber(number) => match field.kind() {
                Kind::Enum(descriptor) => names::word(&descriptor, *number).serialize(serializer),
                _ => Err(S::Error::custom("the field is not an enum")),
            },
            Value::Message(message) => Message(message).serialize(serializer),
            Value::List(_) | Value::Map(_) => {
                debug_assert_eq!(field.cardinality(), Cardinality::Repeated);
                Err(S::Error::custom("a repeated value is nested"))
            }
        }
    }
}
