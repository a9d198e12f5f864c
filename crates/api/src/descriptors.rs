//! What the build of this crate and its users read from descriptors. The build includes this file.

use prost_reflect::{ExtensionDescriptor, FieldDescriptor};

/// Whether the field has the flag `name` in the option `extension`.
#[must_use]
pub fn has_option(field: &FieldDescriptor, extension: &ExtensionDescriptor, name: &str) -> bool {
    let options = field.options();
    let option = options.get_extension(extension);
    let flag = option
        .as_message()
        .and_then(|option| option.get_field_by_name(name));
    flag.and_then(|flag| flag.as_bool()).unwrap_or(false)
}

/// `RunStatus` as `run_status`.
#[must_use]
pub fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

/// `run_status` as `RunStatus`.
#[must_use]
pub fn camel_case(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    words.collect()
}
