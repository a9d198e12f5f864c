//! Equality, order and membership.

use super::meter::Meter;
use super::{Failure, Function, Key, List, Map, Value, number};
use std::cmp::Ordering;

/// Whether two values are equal. Values of different types are not, except numbers, which are compared by value.
pub(super) fn equal(one: &Value, other: &Value, meter: &mut Meter) -> Result<bool, Failure> {
    meter.spend(1)?;
    if let Some(order) = number::compare(one, other) {
        return Ok(order == Ordering::Equal);
    }
    match (one, other) {
        (Value::Null, Value::Null) => Ok(true),
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        (Value::String(one), Value::String(other)) => {
            meter.spend_bytes(one.len().min(other.len()))?;
            Ok(one == other)
        }
        (Value::Bytes(one), Value::Bytes(other)) => {
            meter.spend_bytes(one.len().min(other.len()))?;
            Ok(one == other)
        }
        (Value::Timestamp(one), Value::Timestamp(other)) => Ok(one == other),
        (Value::Duration(one), Value::Duration(other)) => Ok(one == other),
        (Value::Type(one), Value::Type(other)) => Ok(one == other),
        (Value::List(one), Value::List(other)) => equal_lists(one, other, meter),
        (Value::Map(one), Value::Map(other)) => equal_maps(one, other, meter),
        _ => Ok(false),
    }
}

fn equal_lists(one: &List, other: &List, meter: &mut Meter) -> Result<bool, Failure> {
    let (one, other) = (one.elements(meter)?, other.elements(meter)?);
    if one.len() != other.len() {
        return Ok(false);
    }
    for (one, other) in one.iter().zip(other.iter()) {
        if !equal(one, other, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn equal_maps(one: &Map, other: &Map, meter: &mut Meter) -> Result<bool, Failure> {
    let (one, other) = (one.entries(meter)?, other.entries(meter)?);
    if one.len() != other.len() {
        return Ok(false);
    }
    for ((key, one), (other_key, other)) in one.iter().zip(other.iter()) {
        meter.spend_bytes(key.bytes())?;
        if key != other_key || !equal(one, other, meter)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// `one < other`, as an expression compares them.
pub(crate) fn is_less(one: &Value, other: &Value) -> Result<bool, Failure> {
    let operands = [one.clone(), other.clone()];
    let is_less = ordered(Function::Less, &operands, &mut Meter::default())?;
    Ok(matches!(is_less, Value::Bool(true)))
}

/// `<`, `<=`, `>` and `>=`.
pub(super) fn ordered(
    function: Function,
    operands: &[Value; 2],
    meter: &mut Meter,
) -> Result<Value, Failure> {
    let [one, other] = operands;
    let order = match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::String(one), Value::String(other)) => {
            meter.spend_bytes(one.len().min(other.len()))?;
            one.cmp(other)
        }
        (Value::Bytes(one), Value::Bytes(other)) => {
            meter.spend_bytes(one.len().min(other.len()))?;
            one.cmp(other)
        }
        (Value::Timestamp(one), Value::Timestamp(other)) => one.cmp(other),
        (Value::Duration(one), Value::Duration(other)) => one.cmp(other),
        _ => number::compare(one, other)
            .ok_or_else(|| Failure::no_such_overload(function.name(), operands))?,
    };
    Ok(Value::Bool(match function {
        Function::Less => order.is_lt(),
        Function::LessOrEqual => order.is_le(),
        Function::Greater => order.is_gt(),
        _ => order.is_ge(),
    }))
}

/// `element in collection`
pub(super) fn contains(operands: &[Value; 2], meter: &mut Meter) -> Result<Value, Failure> {
    let [wanted, collection] = operands;
    match collection {
        Value::List(list) => {
            for element in list.elements(meter)?.iter() {
                if equal(element, wanted, meter)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        Value::Map(map) => {
            let has = match as_key(wanted) {
                Some(key) => map.has(&key, meter)?,
                None => false,
            };
            Ok(Value::Bool(has))
        }
        _ => Err(Failure::no_such_overload(Function::In.name(), operands)),
    }
}

/// The key that a value is equal to, if any: a double may be a whole number.
pub(super) fn as_key(value: &Value) -> Option<Key> {
    match value {
        Value::Bool(key) => Some(Key::Bool(*key)),
        Value::Int(key) => Some(Key::Int(*key)),
        Value::Uint(key) => Some(Key::Uint(*key)),
        Value::Double(key) => key.to_whole().and_then(Key::of_whole),
        Value::String(key) => Some(Key::String(key.clone())),
        _ => None,
    }
}
