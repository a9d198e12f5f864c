//! Calls: operators and functions that evaluate all their operands.

use super::meter::Meter;
use super::{Failure, Function, Value, conversions, equality, operators, time};

/// What an operator or function gives for its operands. The compiled expression has the right number of them.
pub(super) fn call(
    function: Function,
    operands: Vec<Value>,
    meter: &mut Meter,
) -> Result<Value, Failure> {
    let operands = match <[Value; 1]>::try_from(operands) {
        Ok([operand]) => return of_one(function, &operand, meter),
        Err(operands) => operands,
    };
    match <[Value; 2]>::try_from(operands) {
        Ok(operands) => of_two(function, operands, meter),
        Err(operands) => Err(Failure::no_such_overload(function.name(), &operands)),
    }
}

fn of_one(function: Function, operand: &Value, meter: &mut Meter) -> Result<Value, Failure> {
    match function {
        Function::Not | Function::Negate => operators::unary(function, operand),
        Function::Size => size(operand, meter),
        Function::Dyn => Ok(operand.clone()),
        Function::Type => Ok(Value::Type(operand.kind())),
        Function::Bool
        | Function::Bytes
        | Function::Double
        | Function::Duration
        | Function::Int
        | Function::String
        | Function::Timestamp
        | Function::Uint => conversions::convert(function, operand, meter),
        _ => time::accessor(function, operand, None),
    }
}

fn of_two(function: Function, operands: [Value; 2], meter: &mut Meter) -> Result<Value, Failure> {
    match function {
        Function::Add | Function::Subtract | Function::Multiply | Function::Divide => {
            operators::arithmetic(function, operands, meter)
        }
        Function::Remainder => operators::remainder(&operands),
        Function::Equal => {
            let [one, other] = &operands;
            Ok(Value::Bool(equality::equal(one, other, meter)?))
        }
        Function::NotEqual => {
            let [one, other] = &operands;
            Ok(Value::Bool(!equality::equal(one, other, meter)?))
        }
        Function::Less | Function::LessOrEqual | Function::Greater | Function::GreaterOrEqual => {
            equality::ordered(function, &operands, meter)
        }
        Function::In => equality::contains(&operands, meter),
        Function::Index => operators::index(&operands, meter),
        Function::Contains | Function::StartsWith | Function::EndsWith => {
            text(function, &operands, meter)
        }
        _ => {
            let [operand, zone] = &operands;
            time::accessor(function, operand, Some(zone))
        }
    }
}

/// The number of characters, bytes, elements or entries.
fn size(operand: &Value, meter: &mut Meter) -> Result<Value, Failure> {
    let size = match operand {
        Value::String(text) => {
            meter.spend_bytes(text.len())?;
            text.chars().count()
        }
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.len(meter)?,
        Value::Map(map) => map.len(meter)?,
        _ => {
            return Err(Failure::no_such_overload(
                Function::Size.name(),
                std::slice::from_ref(operand),
            ));
        }
    };
    Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

/// Functions of two strings.
fn text(function: Function, operands: &[Value; 2], meter: &mut Meter) -> Result<Value, Failure> {
    let [Value::String(text), Value::String(part)] = operands else {
        return Err(Failure::no_such_overload(function.name(), operands));
    };
    meter.spend_bytes(text.len() + part.len())?;
    let (text, part) = (text.as_str(), part.as_str());
    Ok(Value::Bool(match function {
        Function::StartsWith => text.starts_with(part),
        Function::EndsWith => text.ends_with(part),
        _ => text.contains(part),
    }))
}
