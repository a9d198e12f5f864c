//! Enum values as words: `RUN_STATUS_TIMED_OUT` is `timed_out`.

use crate::descriptors::snake_case;
use prost_reflect::EnumDescriptor;

/// The word for a value of the enum; `None` for the unspecified value, and for an unknown one, such as that of a newer node.
pub(super) fn word(descriptor: &EnumDescriptor, number: i32) -> Option<String> {
    let value = descriptor.get_value(number).filter(|_| number != 0)?;
    Some(in_lower_case(descriptor, value.name()))
}

/// The number of the value with this word.
pub(super) fn number(descriptor: &EnumDescriptor, word: &str) -> Option<i32> {
    let mut values = descriptor.values().filter(|value| value.number() != 0);
    let value = values.find(|value| in_lower_case(descriptor, value.name()) == word)?;
    Some(value.number())
}

/// The words for all values of the enum but the unspecified one.
#[must_use]
pub fn words(descriptor: &EnumDescriptor) -> Vec<String> {
    let numbers = descriptor.values().map(|value| value.number());
    numbers
        .filter_map(|number| word(descriptor, number))
        .collect()
}

/// The name of a value in lower case, without the name of its enum.
fn in_lower_case(descriptor: &EnumDescriptor, name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let prefix = snake_case(descriptor.name()) + "_";
    name.strip_prefix(&prefix).unwrap_or(&name).to_owned()
}
