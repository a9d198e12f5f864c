//! JSON to messages.

use super::depth::{DEPTH_MAX, is_too_deep};
use super::{BASE64_SUFFIX, FieldForm, form_of, is_in_json, names};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage, Value,
};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde_json::value::RawValue;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// The items of all lists and maps in one text. More than any call takes, and few enough to decode: an empty item takes a
/// hundred times the memory of its text.
pub const ITEMS_MAX: usize = 20_000;

/// Why a text is not valid JSON for a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    /// The place in the text, as a JSON pointer (RFC 6901).
    pub pointer: String,
    /// What is wrong there.
    pub detail: String,
    /// The line, from 1; 0 if unknown.
    pub line: usize,
    /// The column in bytes, from 1; 0 if unknown.
    pub column: usize,
    /// If a name is unknown: the names that are known there.
    pub known: Vec<String>,
}

impl fmt::Display for JsonError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.detail)?;
        if self.line > 0 {
            write!(formatter, " (line {}, column {})", self.line, self.column)?;
        }
        Ok(())
    }
}

impl std::error::Error for JsonError {}

/// Adds the fields of the JSON object in `text` to the message, and returns the names of those that are not `null`. They replace
/// fields that the message already has; the caller compares the names if that is an error.
///
/// # Errors
/// The text is not a JSON object; or it has a field that is unknown, repeated, of the wrong type or excluded by another one.
pub fn from_json(message: &mut DynamicMessage, text: &[u8]) -> Result<BTreeSet<String>, JsonError> {
    let place = Place::default();
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let object = Object {
        message,
        place: &place,
    };
    let parsed = object
        .deserialize(&mut deserializer)
        .and_then(|given| deserializer.end().map(|()| given));
    parsed.map_err(|error| place.error(&error))
}

/// Sets a field of the message from text outside JSON: a path segment or a query parameter. If the field is a list, adds an item.
///
/// # Errors
/// The field does not exist or already has a value, or the text is not a value of its type.
pub fn set_from_text(
    message: &mut DynamicMessage,
    name: &str,
    text: &str,
) -> Result<(), JsonError> {
    let place = Place::default();
    place.enter(name);
    let refuse = |detail: String| JsonError {
        detail,
        ..place.error_without_position()
    };
    let descriptor = message.descriptor();
    let named = Named::of(&descriptor, name).filter(|named| !named.is_compound());
    let Some(named) = named else {
        return Err(JsonError {
            known: known_names(&descriptor),
            ..refuse(format!("expected a parameter, but `{name}` is unknown"))
        });
    };
    let Named { field, is_base64 } = named;
    let value = match field.kind() {
        Kind::Bytes if is_base64 => from_base64(text).map_err(|()| refuse(not_base64())),
        Kind::Bytes => Ok(Value::Bytes(text.as_bytes().to_vec().into())),
        kind => of_text(&kind, text).ok_or_else(|| {
            let expected = expected(&kind);
            refuse(format!("expected {expected}, but it is `{text}`"))
        }),
    }?;
    if field.is_list() {
        if let Value::List(items) = message.get_field_mut(&field) {
            items.push(value);
        }
        return Ok(());
    }
    if message.has_field(&field) {
        return Err(refuse(format!(
            "expected `{name}` once, but it is given again"
        )));
    }
    if let Some(other) = alternative(message, &field) {
        return Err(refuse(format!(
            "expected `{other}` or `{name}`, but both are given"
        )));
    }
    message.set_field(&field, value);
    Ok(())
}

/// The names that JSON knows for the fields of a message.
fn known_names(descriptor: &MessageDescriptor) -> Vec<String> {
    let fields = descriptor.fields().filter(is_in_json);
    fields.map(|field| field.name().to_owned()).collect()
}

/// The field of the message that excludes this one: of a `oneof`, only one field can be set.
fn alternative(message: &DynamicMessage, field: &FieldDescriptor) -> Option<String> {
    let oneof = field.containing_oneof()?;
    let mut others = oneof.fields().filter(|other| other != field);
    let other = others.find(|other| message.has_field(other))?;
    Some(other.name().to_owned())
}

/// The place in the text that is being parsed.
#[derive(Debug, Default)]
struct Place {
    path: RefCell<Vec<String>>,
    /// How many items of lists and entries of maps there were.
    items_count: Cell<usize>,
    known: RefCell<Vec<String>>,
}

impl Place {
    /// Enters a member or an item. After an error, the place stays there, so that the error names it.
    fn enter(&self, name: impl Into<String>) {
        self.path.borrow_mut().push(name.into());
    }

    /// Counts an item of a list or an entry of a map.
    fn count_item<E: Error>(&self) -> Result<(), E> {
        self.items_count.set(self.items_count.get() + 1);
        if self.items_count.get() > ITEMS_MAX {
            let text =
                format!("expected at most {ITEMS_MAX} items in all lists, but there are more");
            return Err(E::custom(text));
        }
        Ok(())
    }

    fn leave(&self) {
        self.path.borrow_mut().pop();
    }

    fn set_known(&self, known: Vec<String>) {
        *self.known.borrow_mut() = known;
    }

    fn error(&self, error: &serde_json::Error) -> JsonError {
        let text = error.to_string();
        let position = format!(" at line {} column {}", error.line(), error.column());
        JsonError {
            detail: text.strip_suffix(&position).unwrap_or(&text).to_owned(),
            line: error.line(),
            column: error.column(),
            ..self.error_without_position()
        }
    }

    fn error_without_position(&self) -> JsonError {
        let path = self.path.borrow();
        let parts = path
            .iter()
            .map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1")));
        JsonError {
            pointer: parts.collect(),
            detail: String::new(),
            line: 0,
            column: 0,
            known: self.known.borrow().clone(),
        }
    }
}

/// The field that a JSON key names.
struct Named {
    field: FieldDescriptor,
    /// Whether its bytes are in base64.
    is_base64: bool,
}

impl Named {
    fn of(descriptor: &MessageDescriptor, key: &str) -> Option<Self> {
        let shown = |name: &str| descriptor.get_field_by_name(name).filter(is_in_json);
        if let Some(field) = shown(key).filter(|field| form_of(field) != FieldForm::Binary) {
            let is_base64 = false;
            return Some(Self { field, is_base64 });
        }
        let field = shown(key.strip_suffix(BASE64_SUFFIX)?)?;
        let is_base64 = matches!(field.kind(), Kind::Bytes);
        is_base64.then_some(Self { field, is_base64 })
    }

    /// Whether text outside JSON cannot be its value.
    fn is_compound(&self) -> bool {
        matches!(self.field.kind(), Kind::Message(_))
    }
}

/// A message that is an object in JSON.
struct Object<'a> {
    message: &'a mut DynamicMessage,
    place: &'a Place,
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = BTreeSet<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = BTreeSet<String>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let descriptor = self.message.descriptor();
        let mut seen = BTreeSet::new();
        let mut given = BTreeSet::new();
        while let Some(key) = members.next_key::<String>()? {
            self.place.enter(key.as_str());
            let Some(named) = Named::of(&descriptor, &key) else {
                self.place.set_known(known_names(&descriptor));
                let text = format!("expected a field, but `{key}` is unknown");
                return Err(A::Error::custom(text));
            };
            let field = named.field.clone();
            if !seen.insert(field.number()) {
                let text = format!("expected `{}` once, but it is given again", field.name());
                return Err(A::Error::custom(text));
            }
            let place = self.place;
            let value = members.next_value_seed(FieldValue { named, place })?;
            if let Some(value) = value {
                if let Some(other) = alternative(self.message, &field) {
                    let text = format!(
                        "expected `{other}` or `{}`, but both are given",
                        field.name()
                    );
                    return Err(A::Error::custom(text));
                }
                self.message.set_field(&field, value);
                given.insert(field.name().to_owned());
            }
            self.place.leave();
        }
        Ok(given)
    }
}

/// Parses the value of a field; `null` gives `None`.
struct FieldValue<'a> {
    named: Named,
    place: &'a Place,
}

impl<'de> DeserializeSeed<'de> for FieldValue<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let Self { named, place } = self;
        let Named { field, is_base64 } = named;
        if field.is_map() {
            return deserializer.deserialize_any(Entries { field, place });
        }
        if field.is_list() {
            return deserializer.deserialize_any(Items { field, place });
        }
        let one = One {
            kind: &field.kind(),
            is_text: form_of(&field) == FieldForm::NumberAsString,
            is_base64,
            place,
        };
        one.deserialize(deserializer)
    }
}

/// The items of a repeated field.
struct Items<'a> {
    field: FieldDescriptor,
    place: &'a Place,
}

impl<'de> Visitor<'de> for Items<'_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::new();
        let kind = self.field.kind();
        loop {
            self.place.enter(values.len().to_string());
            let one = One::item(&kind, self.place);
            let Some(value) = items.next_element_seed(one)? else {
                self.place.leave();
                return Ok(Some(Value::List(values)));
            };
            self.place.count_item()?;
            values.push(value.ok_or_else(|| missing(&kind))?);
            self.place.leave();
        }
    }
}

/// The entries of a map.
struct Entries<'a> {
    field: FieldDescriptor,
    place: &'a Place,
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let Kind::Message(entry) = self.field.kind() else {
            return Err(A::Error::custom("expected a map, but the field is not one"));
        };
        let kind = entry.map_entry_value_field().kind();
        let mut values = HashMap::new();
        while let Some(key) = members.next_key::<String>()? {
            self.place.enter(key.as_str());
            self.place.count_item()?;
            let value = members.next_value_seed(One::item(&kind, self.place))?;
            let value = value.ok_or_else(|| missing(&kind))?;
            if values.insert(MapKey::String(key.clone()), value).is_some() {
                let text = format!("expected `{key}` once, but it is given again");
                return Err(A::Error::custom(text));
            }
            self.place.leave();
        }
        Ok(Some(Value::Map(values)))
    }
}

fn missing<E: Error>(kind: &Kind) -> E {
    let expected = expected(kind);
    E::custom(format!("expected {expected}, but it is null"))
}

/// Parses one value; `null` gives `None`.
struct One<'a> {
    kind: &'a Kind,
    is_text: bool,
    is_base64: bool,
    place: &'a Place,
}

impl<'a> One<'a> {
    /// An item of a list, or a value of a map.
    fn item(kind: &'a Kind, place: &'a Place) -> Self {
        Self {
            kind,
            place,
            is_text: false,
            is_base64: false,
        }
    }
}

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.kind {
            // As written, so that numbers keep their digits.
            Kind::Bytes if !self.is_base64 => {
                let json = <Box<RawValue> as serde::Deserialize>::deserialize(deserializer)?;
                let text: Box<str> = json.into();
                if is_too_deep(&text) {
                    let text =
                        format!("expected JSON of at most {DEPTH_MAX} levels, but it nests deeper");
                    return Err(D::Error::custom(text));
                }
                Ok(
                    (&*text != "null")
                        .then(|| Value::Bytes(String::from(text).into_bytes().into())),
                )
            }
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Option<Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_base64 {
            true => formatter.write_str("text in base64"),
            false => formatter.write_str(&expected(self.kind)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        match self.kind {
            Kind::Bool => Ok(Some(Value::Bool(flag))),
            _ => Err(E::invalid_type(Unexpected::Bool(flag), &self)),
        }
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        let value = of_number(self.kind, number.into());
        let refused = || E::invalid_value(Unexpected::Unsigned(number), &self);
        value.map(Some).ok_or_else(refused)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        let value = of_number(self.kind, number.into());
        let refused = || E::invalid_value(Unexpected::Signed(number), &self);
        value.map(Some).ok_or_else(refused)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        match self.kind {
            Kind::Double => Ok(Some(Value::F64(number))),
            _ => Err(E::invalid_type(Unexpected::Float(number), &self)),
        }
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        let refused = || E::invalid_value(Unexpected::Str(text), &self);
        match self.kind {
            Kind::Bytes => from_base64(text).map(Some).map_err(|()| refused()),
            Kind::String | Kind::Enum(_) => of_text(self.kind, text).map(Some).ok_or_else(refused),
            _ if self.is_text => of_text(self.kind, text).map(Some).ok_or_else(refused),
            _ => Err(E::invalid_type(Unexpected::Str(text), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        let Kind::Message(descriptor) = self.kind else {
            return Err(A::Error::invalid_type(Unexpected::Map, &self));
        };
        let mut message = DynamicMessage::new(descriptor.clone());
        let object = Object {
            message: &mut message,
            place: self.place,
        };
        object.visit_map(members)?;
        Ok(Some(Value::Message(message)))
    }
}

/// A whole number as a value of this kind, if it is in range.
fn of_number(kind: &Kind, number: i128) -> Option<Value> {
    match kind {
        Kind::Uint32 | Kind::Fixed32 => u32::try_from(number).ok().map(Value::U32),
        Kind::Uint64 | Kind::Fixed64 => u64::try_from(number).ok().map(Value::U64),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => i32::try_from(number).ok().map(Value::I32),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => i64::try_from(number).ok().map(Value::I64),
        #[expect(clippy::cast_precision_loss, reason = "a double has fewer digits")]
        Kind::Double => Some(Value::F64(number as f64)),
        _ => None,
    }
}

/// A text as a value of this kind.
fn of_text(kind: &Kind, text: &str) -> Option<Value> {
    match kind {
        Kind::String => Some(Value::String(text.to_owned())),
        Kind::Enum(descriptor) => names::number(descriptor, text).map(Value::EnumNumber),
        Kind::Bool => text.parse().ok().map(Value::Bool),
        Kind::Double => {
            let number = text.parse().ok().filter(|number: &f64| number.is_finite());
            number.map(Value::F64)
        }
        _ => {
            let is_number = text
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'-');
            of_number(kind, text.parse().ok().filter(|_| is_number)?)
        }
    }
}

fn from_base64(text: &str) -> Result<Value, ()> {
    let bytes = STANDARD.decode(text).map_err(drop)?;
    Ok(Value::Bytes(bytes.into()))
}

fn not_base64() -> String {
    "expected text in base64, but it is not".to_owned()
}

/// Describes the values of this kind.
fn expected(kind: &Kind) -> String {
    let words = match kind {
        Kind::Enum(descriptor) => {
            return format!("one of {}", names::words(descriptor).join(", "));
        }
        Kind::Message(_) => "an object",
        Kind::Bool => "true or false",
        Kind::Double | Kind::Float => "a number",
        Kind::String => "a string",
        Kind::Bytes => "JSON",
        Kind::Uint32 | Kind::Fixed32 => "a whole number from 0 to 4294967295",
        Kind::Uint64 | Kind::Fixed64 => "a whole number from 0 to 18446744073709551615",
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            "a whole number from -2147483648 to 2147483647"
        }
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            "a whole number from -9223372036854775808 to 9223372036854775807"
        }
    };
    words.to_owned()
}
