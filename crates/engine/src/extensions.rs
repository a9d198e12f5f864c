//! Optional fields that a later engine version adds to a part of a definition (design rule 12, ADR 0025).
//!
//! They are encoded as a list of the present fields in ascending order of their numbers, each as its number and its
//! value. A definition without such fields therefore has the same bytes, and the same fingerprint, in every build.

use crate::bytes::Bytes;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// An encoded extension: its number and its encoded value.
pub(crate) type Encoded = (u16, Bytes);

/// Reads extensions. Numbers must be strictly ascending, so that each value has exactly one encoding.
///
/// # Errors
/// Those of `deserializer`, and an error if numbers are out of order.
pub(crate) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Encoded>, D::Error> {
    let fields = Vec::<Encoded>::deserialize(deserializer)?;
    if fields.is_sorted_by(|one, next| one.0 < next.0) {
        Ok(fields)
    } else {
        Err(D::Error::custom("expected extensions in ascending order"))
    }
}

/// The error for a number that this build does not know: a newer version wrote it.
pub(crate) fn unknown<E: Error>(number: u16) -> E {
    E::custom(format_args!(
        "expected an extension of this version, but found number {number}"
    ))
}

/// Defines a struct of optional fields. Each row has a number, the engine version that introduced the field, its name
/// and its type. Rows are in the order of their numbers, which are appended and never reused.
macro_rules! extensions {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$field_doc:meta])* $number:literal since $since:expr => $field:ident: $type:ty,)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Option<$type>,)*
        }

        impl $name {
            /// The engine version that the present fields require.
            #[must_use]
            pub fn since(&self) -> u32 {
                let since = crate::version::ENGINE_VERSION_FIRST;
                $(let since = if self.$field.is_some() { since.max($since) } else { since };)*
                since
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let fields: [Option<crate::extensions::Encoded>; _] = [$(
                    self.$field
                        .as_ref()
                        .map(|value| ($number, crate::codec::encode(value).into())),
                )*];
                serializer.collect_seq(fields.into_iter().flatten().collect::<Vec<_>>())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                #[allow(unused_mut, reason = "a struct may have no extension yet")]
                let mut extensions = Self::default();
                for (number, _value) in crate::extensions::read(deserializer)? {
                    match number {
                        $($number => {
                            let value = crate::codec::decode(&_value);
                            extensions.$field = Some(value.map_err(serde::de::Error::custom)?);
                        })*
                        _ => return Err(crate::extensions::unknown(number)),
                    }
                }
                Ok(extensions)
            }
        }
    };
}
pub(crate) use extensions;
