//! Parts of records that equal their default most of the time.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A type with a default that needs no code to make it.
pub trait ConstDefault: Clone + PartialEq + 'static {
    /// The default.
    const DEFAULT: &'static Self;
}

/// A part of a record that equals its default most of the time: it then takes one pointer in memory and one byte in
/// storage.
#[derive(Clone)]
pub struct MostlyDefault<T>(Option<Box<T>>);

impl<T: ConstDefault> MostlyDefault<T> {
    /// The value if it differs from the default.
    fn other(&self) -> Option<&T> {
        self.0.as_deref().filter(|value| *value != T::DEFAULT)
    }
}

impl<T> MostlyDefault<T> {
    /// Sets a field to `None`, which is its default, and returns what it was. Allocates nothing.
    pub(crate) fn take<F>(&mut self, field: impl FnOnce(&mut T) -> &mut Option<F>) -> Option<F> {
        field(self.0.as_deref_mut()?).take()
    }
}

impl<T> Default for MostlyDefault<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T: ConstDefault> From<T> for MostlyDefault<T> {
    fn from(value: T) -> Self {
        Self((value != *T::DEFAULT).then(|| Box::new(value)))
    }
}

impl<T: ConstDefault> Deref for MostlyDefault<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or(T::DEFAULT)
    }
}

impl<T: ConstDefault> DerefMut for MostlyDefault<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_with(|| Box::new(T::DEFAULT.clone()))
    }
}

impl<T: ConstDefault> PartialEq for MostlyDefault<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: ConstDefault + Eq> Eq for MostlyDefault<T> {}

impl<T: ConstDefault + fmt::Debug> fmt::Debug for MostlyDefault<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(formatter)
    }
}

impl<T: ConstDefault + Serialize> Serialize for MostlyDefault<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.other().serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for MostlyDefault<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{decode, encode};

    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Pair {
        left: u64,
        right: Option<String>,
    }

    impl ConstDefault for Pair {
        const DEFAULT: &'static Self = &Self {
            left: 0,
            right: None,
        };
    }

    #[test]
    fn the_default_takes_one_byte_also_after_a_change_and_back() {
        let untouched = MostlyDefault::<Pair>::default();
        let mut pair = untouched.clone();
        pair.left += 1;
        assert_ne!(pair, untouched);
        pair.left -= 1;
        assert_eq!(pair, untouched);
        assert_eq!(encode(&pair), encode(&untouched));
        assert_eq!(encode(&pair).len(), encode(&false).len());
        assert_eq!(size_of_val(&pair), size_of::<usize>());
    }

    #[test]
    fn another_value_survives_the_round_trip() {
        let pair = MostlyDefault::from(Pair {
            left: 7,
            right: Some("text".to_owned()),
        });
        let decoded: MostlyDefault<Pair> = decode(&encode(&pair)).expect("just encoded");
        assert_eq!(decoded, pair);
        assert_eq!(decoded.left, 7);
    }
}
