//! Conversions between types.

use super::meter::Meter;
use super::{Double, Failure, Function, Span, Timestamp, Type, Value, number};
use smol_str::{SmolStr, ToSmolStr};

/// `function(value)`, for a function that is named like a type.
pub(super) fn convert(
    function: Function,
    value: &Value,
    meter: &mut Meter,
) -> Result<Value, Failure> {
    if let Value::String(text) = value {
        meter.spend_bytes(text.len())?;
    }
    let converted = match function {
        Function::Bool => to_bool(value),
        Function::Bytes => to_bytes(value),
        Function::Double => to_double(value),
        Function::Duration => to_duration(value),
        Function::Int => to_int(value),
        Function::String => to_string(value, meter),
        Function::Timestamp => to_timestamp(value),
        Function::Uint => to_uint(value),
        _ => None,
    };
    converted.unwrap_or_else(|| {
        Err(Failure::no_such_overload(
            function.name(),
            std::slice::from_ref(value),
        ))
    })
}

/// The result of a conversion; `None` if it does not take values of the type.
type Converted = Option<Result<Value, Failure>>;

fn to_bool(value: &Value) -> Converted {
    match value {
        Value::Bool(value) => Some(Ok(Value::Bool(*value))),
        Value::String(text) => Some(match text.as_str() {
            "1" | "t" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => Err(Failure::not_convertible(text, Type::Bool)),
        }),
        _ => None,
    }
}

fn to_bytes(value: &Value) -> Converted {
    match value {
        Value::Bytes(bytes) => Some(Ok(Value::Bytes(bytes.clone()))),
        Value::String(text) => Some(Ok(Value::Bytes(text.as_bytes().into()))),
        _ => None,
    }
}

fn to_double(value: &Value) -> Converted {
    match value {
        Value::Double(value) => Some(Ok(Value::Double(*value))),
        Value::Int(value) => Some(Ok(Value::Double(Double::from_int(*value)))),
        Value::Uint(value) => Some(Ok(Value::Double(Double::from_uint(*value)))),
        Value::String(text) => Some(number::read_double(text)),
        _ => None,
    }
}

fn to_int(value: &Value) -> Converted {
    let out_of_range = || Failure::out_of_range(Type::Int);
    match value {
        Value::Int(value) => Some(Ok(Value::Int(*value))),
        Value::Uint(value) => {
            let int = i64::try_from(*value);
            Some(int.map(Value::Int).map_err(|_| out_of_range()))
        }
        Value::Double(value) => {
            let int = value.to_int();
            Some(int.map(Value::Int).ok_or_else(out_of_range))
        }
        Value::String(text) => {
            let int = text.parse().map(Value::Int);
            Some(int.map_err(|_| Failure::not_convertible(text, Type::Int)))
        }
        Value::Timestamp(time) => Some(Ok(Value::Int(time.seconds()))),
        _ => None,
    }
}

fn to_uint(value: &Value) -> Converted {
    let out_of_range = || Failure::out_of_range(Type::Uint);
    match value {
        Value::Uint(value) => Some(Ok(Value::Uint(*value))),
        Value::Int(value) => {
            let uint = u64::try_from(*value);
            Some(uint.map(Value::Uint).map_err(|_| out_of_range()))
        }
        Value::Double(value) => {
            let uint = value.to_uint();
            Some(uint.map(Value::Uint).ok_or_else(out_of_range))
        }
        Value::String(text) => {
            let uint = text.parse().map(Value::Uint);
            Some(uint.map_err(|_| Failure::not_convertible(text, Type::Uint)))
        }
        _ => None,
    }
}

fn to_string(value: &Value, meter: &mut Meter) -> Converted {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Bool(value) => value.to_smolstr(),
        Value::Int(value) => value.to_smolstr(),
        Value::Uint(value) => value.to_smolstr(),
        Value::Double(value) => value.to_smolstr(),
        Value::Timestamp(time) => time.to_smolstr(),
        Value::Duration(span) => span.to_smolstr(),
        Value::Bytes(bytes) => {
            if let Err(failure) = meter.spend_bytes(bytes.len()) {
                return Some(Err(failure));
            }
            match std::str::from_utf8(bytes) {
                Ok(text) => SmolStr::new(text),
                Err(_) => return Some(Err(Failure::new("the bytes are not UTF-8"))),
            }
        }
        _ => return None,
    };
    Some(Ok(Value::String(text)))
}

fn to_timestamp(value: &Value) -> Converted {
    match value {
        Value::Timestamp(time) => Some(Ok(Value::Timestamp(*time))),
        Value::Int(seconds) => Some(Timestamp::from_seconds(*seconds).map(Value::Timestamp)),
        Value::String(text) => {
            let time = Timestamp::parse(text);
            Some(time.map(Value::Timestamp))
        }
        _ => None,
    }
}

fn to_duration(value: &Value) -> Converted {
    match value {
        Value::Duration(span) => Some(Ok(Value::Duration(*span))),
        Value::String(text) => Some(Span::parse(text).map(Value::Duration)),
        _ => None,
    }
}
