//! Compiled expressions: what a definition stores and the engine evaluates.

use super::Pattern;
use serde::{Deserialize, Serialize};
use smol_str::SmolStr;

/// A lowered expression. Invariant: nested no deeper than [`crate::limits::EXPRESSION_DEPTH_MAX`]; each
/// [`Node::Local`] stands inside that many comprehensions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompiledExpression {
    /// The outermost operation.
    pub root: Node,
}

/// An operation and its operands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Node {
    /// A literal.
    Constant(Constant),
    /// A variable that the caller provides, by its position among those of the expression.
    Variable(u16),
    /// The element of a comprehension: 0 is that of the outermost one.
    Local(u16),
    /// `operand.field`
    Select {
        /// A map.
        operand: Box<Node>,
        /// The key.
        field: SmolStr,
    },
    /// `has(operand.field)`
    Has {
        /// A map.
        operand: Box<Node>,
        /// The key.
        field: SmolStr,
    },
    /// `[a, b]`
    List(Vec<Node>),
    /// `{a: b}`
    Map(Vec<(Node, Node)>),
    /// `a && b`
    And(Box<(Node, Node)>),
    /// `a || b`
    Or(Box<(Node, Node)>),
    /// `a ? b : c`
    Conditional(Box<(Node, Node, Node)>),
    /// An operator or function that evaluates all its operands.
    Call {
        /// What is called.
        function: Function,
        /// Its operands, the receiver first.
        operands: Vec<Node>,
    },
    /// `text.matches("pattern")`
    Matches {
        /// A string.
        text: Box<Node>,
        /// The compiled pattern.
        pattern: Pattern,
    },
    /// A macro over the elements of a list or the keys of a map.
    Comprehension(Box<Comprehension>),
}

/// A macro over the elements of a list or the keys of a map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comprehension {
    /// `range.all(x, predicate)`
    All {
        /// The list or map.
        range: Node,
        /// A condition on the element.
        predicate: Node,
    },
    /// `range.exists(x, predicate)`
    Exists {
        /// The list or map.
        range: Node,
        /// A condition on the element.
        predicate: Node,
    },
    /// `range.exists_one(x, predicate)`
    ExistsOne {
        /// The list or map.
        range: Node,
        /// A condition on the element.
        predicate: Node,
    },
    /// `range.filter(x, predicate)`
    Filter {
        /// The list or map.
        range: Node,
        /// A condition on the element.
        predicate: Node,
    },
    /// `range.map(x, transform)` and `range.map(x, predicate, transform)`
    Map {
        /// The list or map.
        range: Node,
        /// A condition on the element.
        predicate: Option<Node>,
        /// What becomes of the element.
        transform: Node,
    },
}

/// A literal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Constant {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// `1`
    Int(i64),
    /// `1u`
    Uint(u64),
    /// `1.0`, as the bits of the number.
    Double(u64),
    /// `"text"`
    String(SmolStr),
    /// `b"bytes"`
    Bytes(Vec<u8>),
    /// The name of a type, such as `int`.
    Type(Type),
}

impl Constant {
    /// The size of a text or bytes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::Null
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Uint(_)
            | Self::Double(_)
            | Self::Type(_) => 0,
        }
    }
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Type {
    /// `null_type`
    Null,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `uint`
    Uint,
    /// `double`
    Double,
    /// `string`
    String,
    /// `bytes`
    Bytes,
    /// `list`
    List,
    /// `map`
    Map,
    /// `google.protobuf.Timestamp`
    Timestamp,
    /// `google.protobuf.Duration`
    Duration,
    /// `type`
    Type,
}

impl Type {
    /// All types.
    pub const ALL: [Self; 12] = [
        Self::Null,
        Self::Bool,
        Self::Int,
        Self::Uint,
        Self::Double,
        Self::String,
        Self::Bytes,
        Self::List,
        Self::Map,
        Self::Timestamp,
        Self::Duration,
        Self::Type,
    ];

    /// The name in the CEL specification.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Uint => "uint",
            Self::Double => "double",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::List => "list",
            Self::Map => "map",
            Self::Timestamp => "google.protobuf.Timestamp",
            Self::Duration => "google.protobuf.Duration",
            Self::Type => "type",
        }
    }
}

/// Lists the operators and functions that evaluate all their operands: each with its name in messages, and the fewest
/// and most operands that it takes.
macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident => $name:literal, $least:literal..=$most:literal;)*) => {
        /// An operator or function that evaluates all its operands. Variants are appended and never reordered, because
        /// stored definitions contain their positions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum Function {
            $($(#[$doc])* $variant,)*
        }

        impl Function {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The operator, or the function's name.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Whether it takes this many operands, the receiver included.
            #[must_use]
            pub fn takes(self, operands: usize) -> bool {
                match self {
                    $(Self::$variant => ($least..=$most).contains(&operands),)*
                }
            }
        }
    };
}

functions! {
    /// `!a`
    Not => "!", 1..=1;
    /// `-a`
    Negate => "-", 1..=1;
    /// `a + b`
    Add => "+", 2..=2;
    /// `a - b`
    Subtract => "-", 2..=2;
    /// `a * b`
    Multiply => "*", 2..=2;
    /// `a / b`
    Divide => "/", 2..=2;
    /// `a % b`
    Remainder => "%", 2..=2;
    /// `a == b`
    Equal => "==", 2..=2;
    /// `a != b`
    NotEqual => "!=", 2..=2;
    /// `a < b`
    Less => "<", 2..=2;
    /// `a <= b`
    LessOrEqual => "<=", 2..=2;
    /// `a > b`
    Greater => ">", 2..=2;
    /// `a >= b`
    GreaterOrEqual => ">=", 2..=2;
    /// `a in b`
    In => "in", 2..=2;
    /// `a[b]`
    Index => "[]", 2..=2;
    /// The number of characters, bytes, elements or entries.
    Size => "size", 1..=1;
    /// Whether a string contains another.
    Contains => "contains", 2..=2;
    /// Whether a string begins with another.
    StartsWith => "startsWith", 2..=2;
    /// Whether a string ends with another.
    EndsWith => "endsWith", 2..=2;
    /// Conversion to a bool.
    Bool => "bool", 1..=1;
    /// Conversion to bytes.
    Bytes => "bytes", 1..=1;
    /// Conversion to a double.
    Double => "double", 1..=1;
    /// Conversion to a duration.
    Duration => "duration", 1..=1;
    /// The value itself, for type checkers.
    Dyn => "dyn", 1..=1;
    /// Conversion to an int.
    Int => "int", 1..=1;
    /// Conversion to a string.
    String => "string", 1..=1;
    /// Conversion to a timestamp.
    Timestamp => "timestamp", 1..=1;
    /// The type of a value.
    Type => "type", 1..=1;
    /// Conversion to a uint.
    Uint => "uint", 1..=1;
    /// The day of the month of a timestamp, from 1.
    GetDate => "getDate", 1..=2;
    /// The day of the month of a timestamp, from 0.
    GetDayOfMonth => "getDayOfMonth", 1..=2;
    /// The day of the week of a timestamp, from 0 for Sunday.
    GetDayOfWeek => "getDayOfWeek", 1..=2;
    /// The day of the year of a timestamp, from 0.
    GetDayOfYear => "getDayOfYear", 1..=2;
    /// The year of a timestamp.
    GetFullYear => "getFullYear", 1..=2;
    /// The hour of a timestamp, or the whole hours of a duration.
    GetHours => "getHours", 1..=2;
    /// The milliseconds of a timestamp or duration after its last whole second.
    GetMilliseconds => "getMilliseconds", 1..=2;
    /// The minute of a timestamp, or the whole minutes of a duration.
    GetMinutes => "getMinutes", 1..=2;
    /// The month of a timestamp, from 0.
    GetMonth => "getMonth", 1..=2;
    /// The second of a timestamp, or the whole seconds of a duration.
    GetSeconds => "getSeconds", 1..=2;
}
