//! What an expression comes to.

use std::cmp::Ordering;

use crate::condition::Truth;
use crate::tree::{Level, Op};

/// A value. A number is never NaN: that is undefined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'v> {
    Undefined,
    /// A path that is not in the body: null wherever a value is asked for, but not defined.
    Missing,
    Null,
    Bool(bool),
    Number(f64),
    /// Of the message or of the route.
    Text(&'v str),
    /// Made while evaluating.
    Made(Made),
}

/// A piece of the text that was made so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

impl<'v> Value<'v> {
    /// A number, or undefined if it is none.
    pub(crate) fn number(value: f64) -> Self {
        if value.is_nan() { Self::Undefined } else { Self::Number(value) }
    }

    pub(crate) fn number_or_undefined(value: Option<f64>) -> Self {
        value.map_or(Self::Undefined, Self::number)
    }

    /// Where conditions are joined, null counts as false, and what is neither true nor false as undefined.
    pub(crate) fn truth(self) -> Truth {
        match self {
            Self::Bool(true) => Truth::True,
            Self::Bool(false) | Self::Null | Self::Missing => Truth::False,
            Self::Undefined | Self::Number(_) | Self::Text(_) | Self::Made(_) => Truth::Undefined,
        }
    }

    pub(crate) fn of_truth(truth: Truth) -> Self {
        match truth {
            Truth::True => Self::Bool(true),
            Truth::False => Self::Bool(false),
            Truth::Undefined => Self::Undefined,
        }
    }

    /// The text that it is, if it is one.
    pub(crate) fn text<'s>(self, made: &'s str) -> Option<&'s str>
    where
        'v: 's,
    {
        match self {
            Self::Text(text) => Some(text),
            Self::Made(Made { from, to }) => Some(&made[from..to]),
            Self::Undefined | Self::Missing | Self::Null | Self::Bool(_) | Self::Number(_) => None,
        }
    }

    pub(crate) fn is_null(self) -> bool {
        matches!(self, Self::Null | Self::Missing)
    }

    /// A path that is not in the body is not defined, and a null that is there is.
    ///
    /// Source: `is_defined($body.…)` selects the twin changes that contain a property (Azure IoT Hub, "IoT Hub message routing query
    /// syntax", "Message routing query based on message body").
    pub(crate) fn is_defined(self) -> bool {
        !matches!(self, Self::Undefined | Self::Missing)
    }

    pub(crate) fn as_number(self) -> Option<f64> {
        if let Self::Number(value) = self { Some(value) } else { None }
    }
}

/// Compares two values; the result is undefined where one of them is.
///
/// Values of different kinds are not equal, and null equals null and nothing else, so `!=` is true of a status that is missing or no
/// string. Only two numbers, two strings and two nulls have an order.
///
/// Source: IoT Edge, class `QueryValue`, and its published cases `BodyQuery_Null`, `BodyQuery_Bool` and `BodyQuery_String_Success`. There,
/// values of different kinds also have an order, that of the numbers of their kinds; here they have none.
pub(crate) fn compare(op: Op, left: Value<'_>, right: Value<'_>, made: &str) -> Value<'static> {
    let is_equality = op.level() == Level::Equality;
    let order = match (left, right) {
        (Value::Undefined, _) | (_, Value::Undefined) => None,
        (Value::Number(left), Value::Number(right)) => left.partial_cmp(&right),
        (Value::Bool(left), Value::Bool(right)) if is_equality => Some(left.cmp(&right)),
        (Value::Text(left), Value::Text(right)) if is_equality => {
            Some(if left == right { Ordering::Equal } else { Ordering::Less })
        }
        _ if left.is_null() && right.is_null() => Some(Ordering::Equal),
        _ => {
            let texts = left.text(made).zip(right.text(made)).map(|(left, right)| left.cmp(right));
            texts.or(is_equality.then_some(Ordering::Less))
        }
    };
    order.map_or(Value::Undefined, |order| Value::Bool(holds(op, order)))
}

/// Whether a comparison is true of values in this order.
fn holds(op: Op, order: Ordering) -> bool {
    match op {
        Op::Equal => order.is_eq(),
        Op::NotEqual => order.is_ne(),
        Op::Less => order.is_lt(),
        Op::LessOrEqual => order.is_le(),
        Op::Greater => order.is_gt(),
        Op::GreaterOrEqual => order.is_ge(),
        _ => unreachable!("only comparisons compare"),
    }
}

/// Arithmetic of numbers (IEEE 754): `3 / 0` is infinite, `3 % 0` undefined.
pub(crate) fn arithmetic(op: Op, left: Value<'_>, right: Value<'_>) -> Value<'static> {
    let (Value::Number(left), Value::Number(right)) = (left, right) else { return Value::Undefined };
    Value::number(match op {
        Op::Plus => left + right,
        Op::Minus => left - right,
        Op::Times => left * right,
        Op::Divide => left / right,
        Op::Modulo => left % right,
        _ => unreachable!("only arithmetic calculates"),
    })
}

/// The number that a text says: sign, digits, a point, an exponent; blanks around it. One that is too large is infinite.
pub(crate) fn number_of(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    // Neither "inf" nor "nan" is a number to a person.
    let starts_well = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    starts_well.then(|| text.parse().ok()).flatten()
}
