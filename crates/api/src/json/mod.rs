//! Messages as JSON, for HTTP (H3).
//!
//! Unlike ProtoJSON, the standard mapping of Protocol Buffers, it has the field names of the protocol files, numbers as numbers,
//! enum values as words in lower case, and payloads as JSON whose numbers keep their digits. A response has every field: `null`
//! stands for an absent value. A `bytes` field `x` that does not hold JSON becomes `x_base64`. The field `request_id` is
//! omitted: a header carries it.

mod decode;
mod depth;
mod encode;
mod names;

pub use decode::{ITEMS_MAX, JsonError, from_json, set_from_text};
pub use encode::to_json;
pub use names::words as enum_words;

use crate::descriptors::has_option;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The descriptors of all protocol files.
///
/// # Panics
/// Never: the build has made the descriptors from the same files.
pub static DESCRIPTORS: LazyLock<DescriptorPool> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "a test decodes them")]
    DescriptorPool::decode(crate::FILE_DESCRIPTOR_SET).expect("the build has made them")
});

/// The forms of the fields that have an option of `flotilla.rest`, by their full names.
static FORMS: LazyLock<BTreeMap<String, FieldForm>> = LazyLock::new(|| {
    let Some(extension) = DESCRIPTORS.get_extension_by_name("flotilla.rest.field") else {
        return BTreeMap::new();
    };
    let messages = DESCRIPTORS.all_messages();
    let fields = messages.flat_map(|message| message.fields().collect::<Vec<_>>());
    let forms = fields.filter_map(|field| {
        let mut options = FieldForm::OPTIONS.into_iter();
        let (_, form) = options.find(|(name, _)| has_option(&field, &extension, name))?;
        Some((field.full_name().to_owned(), form))
    });
    forms.collect()
});

/// The suffix of a field's name in JSON if its bytes are not JSON.
pub const BASE64_SUFFIX: &str = "_base64";
/// The field that HTTP carries in a header.
pub const REQUEST_ID: &str = "request_id";

/// How JSON represents a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldForm {
    /// As usual for its type.
    Plain,
    /// A number as a string, because it may exceed 2^53, above which many programs lose digits.
    NumberAsString,
    /// An object, whose members stand beside the fields of the message.
    Flattened,
    /// Bytes in base64, even if they are JSON.
    Binary,
    /// Omitted: a header carries it.
    Omitted,
}

impl FieldForm {
    /// The options of fields, with the forms that they stand for.
    const OPTIONS: [(&str, Self); 3] = [
        ("as_string", Self::NumberAsString),
        ("flatten", Self::Flattened),
        ("binary", Self::Binary),
    ];
}

/// How JSON represents the field.
#[must_use]
pub fn form_of(field: &FieldDescriptor) -> FieldForm {
    match field.kind() {
        _ if field.name() == REQUEST_ID => FieldForm::Omitted,
        Kind::Uint64 | Kind::Bytes => {
            let form = FORMS.get(field.full_name());
            form.copied().unwrap_or(FieldForm::Plain)
        }
        _ => FieldForm::Plain,
    }
}

/// Whether JSON has the field.
fn is_in_json(field: &FieldDescriptor) -> bool {
    form_of(field) != FieldForm::Omitted
}

#[cfg(test)]
mod tests;
