//! The values of expressions.

use super::{Constant, Double, Failure, Span, Timestamp, Type};
use crate::json::Json;
use smol_str::SmolStr;
use std::cell::{Cell, OnceCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `null`
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A floating-point number.
    Double(Double),
    /// A text.
    String(SmolStr),
    /// A sequence of bytes.
    Bytes(Rc<[u8]>),
    /// A list.
    List(List),
    /// A map.
    Map(Map),
    /// A point in time.
    Timestamp(Timestamp),
    /// A length of time.
    Duration(Span),
    /// A type.
    Type(Type),
}

/// A list.
#[derive(Clone, Debug)]
pub enum List {
    /// One that an expression made.
    Made(Rc<Vec<Value>>),
    /// A JSON array.
    Json(Rc<Container<Vec<Read>>>),
}

/// A map.
#[derive(Clone, Debug)]
pub enum Map {
    /// One that an expression made.
    Made(Rc<BTreeMap<Key, Value>>),
    /// A JSON object.
    Json(Rc<Container<BTreeMap<Key, Read>>>),
}

/// A value of a JSON text, or why it cannot be read: numbers may be out of range.
pub(super) type Read = Result<Value, Failure>;

/// A JSON array or object. The first search for one value scans the text; the second one reads the whole level, so that
/// further ones cost little.
#[derive(Debug)]
pub struct Container<C> {
    text: Slice,
    was_searched: Cell<bool>,
    content: OnceCell<Rc<C>>,
}

impl<C> Container<C> {
    pub(super) fn new(text: Slice) -> Rc<Self> {
        Rc::new(Self {
            text,
            was_searched: Cell::new(false),
            content: OnceCell::new(),
        })
    }

    /// The text.
    pub(super) fn text(&self) -> &Slice {
        &self.text
    }

    /// Whether the text should be scanned for one value: it has not been, and the content was not read.
    pub(super) fn is_to_be_scanned(&self) -> bool {
        self.content.get().is_none() && !self.was_searched.replace(true)
    }

    /// The content, which `read` reads once.
    pub(super) fn content<E>(&self, read: impl FnOnce() -> Result<C, E>) -> Result<Rc<C>, E> {
        if let Some(content) = self.content.get() {
            return Ok(content.clone());
        }
        let content = Rc::new(read()?);
        Ok(self.content.get_or_init(|| content).clone())
    }
}

/// The key of a map. An int and a uint of the same value are the same key.
#[derive(Clone, Debug)]
pub enum Key {
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A text.
    String(SmolStr),
}

/// A part of a JSON text: one whole value.
#[derive(Clone, Debug)]
pub(super) struct Slice {
    text: SmolStr,
    from: usize,
    to: usize,
}

impl Slice {
    /// A whole text.
    pub(super) fn whole(text: SmolStr) -> Self {
        let to = text.len();
        Self { text, from: 0, to }
    }

    /// The text of the value.
    pub(super) fn as_str(&self) -> &str {
        &self.text[self.from..self.to]
    }

    /// A part of this part.
    ///
    /// # Panics
    /// If `part` was not sliced from [`Self::as_str`].
    pub(super) fn part(&self, part: &str) -> Self {
        let offset = (part.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize);
        let offset = offset.filter(|offset| offset + part.len() <= self.text.len());
        let offset = offset.expect("a part of the text");
        Self {
            text: self.text.clone(),
            from: offset,
            to: offset + part.len(),
        }
    }
}

impl Key {
    /// The key as a value.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Bool(key) => Value::Bool(*key),
            Self::Int(key) => Value::Int(*key),
            Self::Uint(key) => Value::Uint(*key),
            Self::String(key) => Value::String(key.clone()),
        }
    }

    /// A whole number as a key; `None` outside the ranges of int and uint.
    pub(super) fn of_whole(whole: i128) -> Option<Self> {
        let int = i64::try_from(whole).map(Self::Int);
        int.or_else(|_| u64::try_from(whole).map(Self::Uint)).ok()
    }

    /// The size of a text, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::String(key) => key.len(),
            Self::Bool(_) | Self::Int(_) | Self::Uint(_) => 0,
        }
    }

    fn rank(&self) -> (u8, i128, &str) {
        match self {
            Self::Bool(key) => (0, i128::from(*key), ""),
            Self::Int(key) => (1, i128::from(*key), ""),
            Self::Uint(key) => (1, i128::from(*key), ""),
            Self::String(key) => (2, 0, key),
        }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Key {}

impl Value {
    /// A JSON text as a value. The content of objects and arrays is read when it is needed.
    ///
    /// # Errors
    /// If it is a number outside the range of doubles.
    pub fn from_json(json: Json) -> Result<Self, Failure> {
        Slice::whole(json.into_text()).to_value()
    }

    /// A list that an expression made.
    #[must_use]
    pub fn list(elements: Vec<Self>) -> Self {
        Self::List(List::Made(Rc::new(elements)))
    }

    /// A map that an expression made.
    #[must_use]
    pub fn map(entries: BTreeMap<Key, Self>) -> Self {
        Self::Map(Map::Made(Rc::new(entries)))
    }

    /// Its type.
    #[must_use]
    pub fn kind(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::String(_) => Type::String,
            Self::Bytes(_) => Type::Bytes,
            Self::List(_) => Type::List,
            Self::Map(_) => Type::Map,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::Type(_) => Type::Type,
        }
    }
}

impl From<&Constant> for Value {
    fn from(constant: &Constant) -> Self {
        match constant {
            Constant::Null => Self::Null,
            Constant::Bool(value) => Self::Bool(*value),
            Constant::Int(value) => Self::Int(*value),
            Constant::Uint(value) => Self::Uint(*value),
            Constant::Double(bits) => Self::Double(Double::from_bits(*bits)),
            Constant::String(text) => Self::String(text.clone()),
            Constant::Bytes(bytes) => Self::Bytes(bytes.as_slice().into()),
            Constant::Type(of) => Self::Type(*of),
        }
    }
}
