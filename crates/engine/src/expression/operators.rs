//! Operators: arithmetic, indexing and selection.

use super::failure::{a_value, quoted};
use super::meter::Meter;
use super::number::{self, Arithmetic};
use super::{Double, Failure, Function, Key, Map, Type, Value, equality, read};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::rc::Rc;

/// `one + other`, as an expression adds them.
pub(crate) fn add(one: Value, other: Value) -> Result<Value, Failure> {
    arithmetic(Function::Add, [one, other], &mut Meter::default())
}

/// `+`, `-`, `*` and `/`.
pub(super) fn arithmetic(
    function: Function,
    operands: [Value; 2],
    meter: &mut Meter,
) -> Result<Value, Failure> {
    let operation = match function {
        Function::Add => Arithmetic::Add,
        Function::Subtract => Arithmetic::Subtract,
        Function::Multiply => Arithmetic::Multiply,
        _ => Arithmetic::Divide,
    };
    match &operands {
        [Value::Int(one), Value::Int(other)] => number::ints(operation, *one, *other),
        [Value::Uint(one), Value::Uint(other)] => number::uints(operation, *one, *other),
        [Value::Double(one), Value::Double(other)] => number::doubles(operation, *one, *other),
        // Our one addition to CEL: JSON writes a price of 100 as an int.
        [Value::Int(one), Value::Double(other)] => {
            number::doubles(operation, Double::from_int(*one), *other)
        }
        [Value::Double(one), Value::Int(other)] => {
            number::doubles(operation, *one, Double::from_int(*other))
        }
        _ => match operation {
            Arithmetic::Add => join(operands, meter),
            Arithmetic::Subtract => subtract(&operands),
            Arithmetic::Multiply | Arithmetic::Divide => {
                Err(Failure::no_such_overload(function.name(), &operands))
            }
        },
    }
}

/// `+` of texts, bytes, lists and times.
fn join(operands: [Value; 2], meter: &mut Meter) -> Result<Value, Failure> {
    match operands {
        [Value::String(one), Value::String(other)] => {
            meter.spend_bytes(one.len() + other.len())?;
            Ok(Value::String(
                [one.as_str(), other.as_str()].concat().into(),
            ))
        }
        [Value::Bytes(one), Value::Bytes(other)] => {
            meter.spend_bytes(one.len() + other.len())?;
            Ok(Value::Bytes([&one[..], &other[..]].concat().into()))
        }
        [Value::List(one), Value::List(other)] => {
            let (mut one, other) = (one.elements(meter)?, other.elements(meter)?);
            meter.spend(one.len() + other.len())?;
            Rc::make_mut(&mut one).extend(other.iter().cloned());
            Ok(Value::List(super::List::Made(one)))
        }
        [Value::Timestamp(time), Value::Duration(span)]
        | [Value::Duration(span), Value::Timestamp(time)] => Ok(Value::Timestamp(time.plus(span)?)),
        [Value::Duration(one), Value::Duration(other)] => Ok(Value::Duration(one.plus(other)?)),
        other => Err(Failure::no_such_overload(Function::Add.name(), &other)),
    }
}

/// `-` of times.
fn subtract(operands: &[Value; 2]) -> Result<Value, Failure> {
    match operands {
        [Value::Timestamp(one), Value::Timestamp(other)] => Ok(Value::Duration(one.since(*other)?)),
        [Value::Timestamp(time), Value::Duration(span)] => {
            Ok(Value::Timestamp(time.plus(span.negated())?))
        }
        [Value::Duration(one), Value::Duration(other)] => {
            Ok(Value::Duration(one.plus(other.negated())?))
        }
        _ => Err(Failure::no_such_overload(
            Function::Subtract.name(),
            operands,
        )),
    }
}

/// `one % other`
pub(super) fn remainder(operands: &[Value; 2]) -> Result<Value, Failure> {
    match operands {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Failure::new("modulus by zero"))
        }
        [Value::Int(one), Value::Int(other)] => {
            let result = one.checked_rem(*other);
            Ok(Value::Int(
                result.ok_or_else(|| Failure::out_of_range(Type::Int))?,
            ))
        }
        [Value::Uint(one), Value::Uint(other)] => Ok(Value::Uint(one % other)),
        _ => Err(Failure::no_such_overload(
            Function::Remainder.name(),
            operands,
        )),
    }
}

/// `!operand` and `-operand`
pub(super) fn unary(function: Function, operand: &Value) -> Result<Value, Failure> {
    match (function, operand) {
        (Function::Not, Value::Bool(operand)) => Ok(Value::Bool(!operand)),
        (Function::Negate, Value::Int(operand)) => {
            let negated = operand.checked_neg();
            Ok(Value::Int(
                negated.ok_or_else(|| Failure::out_of_range(Type::Int))?,
            ))
        }
        (Function::Negate, Value::Double(operand)) => Ok(Value::Double(operand.negated())),
        (Function::Negate, Value::Duration(operand)) => Ok(Value::Duration(operand.negated())),
        _ => Err(Failure::no_such_overload(
            function.name(),
            std::slice::from_ref(operand),
        )),
    }
}

/// `operand.field`
pub(super) fn select(
    operand: &Value,
    field: &SmolStr,
    meter: &mut Meter,
) -> Result<Value, Failure> {
    let Value::Map(map) = operand else {
        return Err(not_a_map(operand, field));
    };
    let value = map.value(&Key::String(field.clone()), meter)?;
    value.ok_or_else(|| Failure::no_such_key(field))
}

/// `has(operand.field)`
pub(super) fn has(operand: &Value, field: &SmolStr, meter: &mut Meter) -> Result<Value, Failure> {
    let Value::Map(map) = operand else {
        return Err(not_a_map(operand, field));
    };
    Ok(Value::Bool(map.has(&Key::String(field.clone()), meter)?))
}

fn not_a_map(operand: &Value, field: &SmolStr) -> Failure {
    let operand = a_value(operand.kind());
    Failure::new(format!("{operand} has no field {}", quoted(field)))
}

/// `collection[index]`
pub(super) fn index(operands: &[Value; 2], meter: &mut Meter) -> Result<Value, Failure> {
    let [collection, index] = operands;
    let no_such_overload = || Failure::no_such_overload(Function::Index.name(), operands);
    match collection {
        Value::List(list) => {
            let position = match index {
                Value::Int(position) => i128::from(*position),
                Value::Uint(position) => i128::from(*position),
                Value::Double(position) => position.to_whole().ok_or_else(no_such_overload)?,
                _ => return Err(no_such_overload()),
            };
            let element = match usize::try_from(position) {
                Ok(position) => list.element(position, meter)?,
                Err(_) => None,
            };
            element.ok_or_else(|| Failure::new(format!("index out of bounds: {position}")))
        }
        Value::Map(map) => {
            let key = match index {
                Value::Double(_) => equality::as_key(index),
                _ => Some(equality::as_key(index).ok_or_else(no_such_overload)?),
            };
            let value = match &key {
                Some(key) => map.value(key, meter)?,
                None => None,
            };
            value.ok_or_else(|| match index {
                Value::String(key) => Failure::no_such_key(key),
                _ => Failure::new("no such key"),
            })
        }
        _ => Err(no_such_overload()),
    }
}

/// `{key: value}`
pub(super) fn map(entries: Vec<(Value, Value)>, meter: &mut Meter) -> Result<Value, Failure> {
    let mut made = BTreeMap::new();
    for (key, value) in entries {
        let key = match key {
            Value::Bool(key) => Key::Bool(key),
            Value::Int(key) => Key::Int(key),
            Value::Uint(key) => Key::Uint(key),
            Value::String(key) => Key::String(key),
            other => {
                let key = a_value(other.kind());
                return Err(Failure::new(format!("{key} cannot be a key")));
            }
        };
        read::spend_search(&key, made.len(), meter)?;
        if made.insert(key, value).is_some() {
            return Err(Failure::new("a map cannot repeat a key"));
        }
    }
    Ok(Value::Map(Map::Made(Rc::new(made))))
}
