//! What the functions do. Their arguments were counted, and checked where they are known; here, what is wrong gives undefined.
//!
//! Strings are counted in characters, from 0, and compared as they are: case counts.

use crate::evaluate::{Evaluator, Lookup, TEXT_LEN_MAX};
use crate::function::Function;
use crate::value::{Made, Value, number_of};

impl<'v, L: Lookup> Evaluator<'v, '_, L> {
    pub(crate) fn function(&mut self, function: Function, args: &[Value<'v>]) -> Value<'v> {
        match (function, args) {
            (Function::Power, [base, exponent]) => {
                let numbers = base.as_number().zip(exponent.as_number());
                Value::number_or_undefined(numbers.map(|(base, exponent)| base.powf(exponent)))
            }
            (Function::IsBool, [value]) => Value::Bool(matches!(value, Value::Bool(_))),
            (Function::IsDefined, [value]) => Value::Bool(value.is_defined()),
            (Function::IsNull, [value]) => Value::Bool(value.is_null()),
            (Function::IsNumber, [value]) => Value::Bool(value.as_number().is_some_and(f64::is_finite)),
            (Function::IsString, [value]) => Value::Bool(matches!(value, Value::Text(_) | Value::Made(_))),
            (Function::Lower | Function::Upper, [value]) => self.in_case(*value, function == Function::Upper),
            (Function::Substring, [value, rest @ ..]) => self.substring(*value, rest),
            (_, [value]) => match (function, value) {
                (Function::AsNumber, Value::Number(_)) => *value,
                (Function::AsNumber | Function::Length, _) => self.measured(function, *value),
                (_, Value::Number(number)) => Value::number(calculated(function, *number)),
                _ => Value::Undefined,
            },
            (_, [text, part]) => self.searched(function, *text, *part),
            _ => Value::Undefined,
        }
    }

    fn measured(&self, function: Function, value: Value<'v>) -> Value<'v> {
        let Some(text) = value.text(self.made) else { return Value::Undefined };
        match function {
            Function::Length => Value::Number(text.chars().count() as f64),
            _ => Value::number_or_undefined(number_of(text)),
        }
    }

    fn searched(&self, function: Function, text: Value<'v>, part: Value<'v>) -> Value<'v> {
        let Some((text, part)) = text.text(self.made).zip(part.text(self.made)) else {
            return Value::Undefined;
        };
        match function {
            Function::StartsWith => Value::Bool(text.starts_with(part)),
            Function::EndsWith => Value::Bool(text.ends_with(part)),
            Function::Contains => Value::Bool(text.contains(part)),
            Function::IndexOf => {
                Value::Number(text.find(part).map_or(-1.0, |at| text[..at].chars().count() as f64))
            }
            _ => Value::Undefined,
        }
    }

    /// From a character on, so many, or as many as there are.
    fn substring(&self, value: Value<'v>, rest: &[Value<'v>]) -> Value<'v> {
        let whole =
            |value: &Value<'v>| value.as_number().filter(|number| *number >= 0.0 && number.fract() == 0.0);
        let (Some(text), Some(start)) = (value.text(self.made), rest.first().and_then(whole)) else {
            return Value::Undefined;
        };
        let place = |text: &str, count: f64| {
            // Beyond all that there is, it is the end.
            text.char_indices().nth(count as usize).map_or(text.len(), |(at, _)| at)
        };
        let from = place(text, start);
        let to = match rest.get(1).map(whole) {
            None => text.len(),
            Some(Some(count)) => from + place(&text[from..], count),
            Some(None) => return Value::Undefined,
        };
        match value {
            Value::Text(text) => Value::Text(&text[from..to]),
            Value::Made(made) => Value::Made(Made { from: made.from + from, to: made.from + to }),
            _ => Value::Undefined,
        }
    }

    fn in_case(&mut self, value: Value<'v>, is_upper: bool) -> Value<'v> {
        let Some(text) = value.text(self.made) else { return Value::Undefined };
        let is_there =
            |byte: u8| if is_upper { !byte.is_ascii_lowercase() } else { !byte.is_ascii_uppercase() };
        if text.is_ascii() && text.bytes().all(is_there) {
            return value;
        }
        let from = self.made.len();
        if text.is_ascii() {
            if self.append(value).is_none() {
                return Value::Undefined;
            }
            let made = &mut self.made[from..];
            if is_upper {
                made.make_ascii_uppercase()
            } else {
                made.make_ascii_lowercase()
            }
            return Value::Made(Made { from, to: self.made.len() });
        }
        let text = if is_upper { text.to_uppercase() } else { text.to_lowercase() };
        if from + text.len() > TEXT_LEN_MAX {
            return Value::Undefined;
        }
        self.made.push_str(&text);
        Value::Made(Made { from, to: self.made.len() })
    }
}

fn calculated(function: Function, number: f64) -> f64 {
    match function {
        Function::Abs => number.abs(),
        Function::Exp => number.exp(),
        Function::Square => number * number,
        Function::Ceiling => number.ceil(),
        Function::Floor => number.floor(),
        Function::Sqrt => number.sqrt(),
        Function::Sign if number == 0.0 => 0.0,
        Function::Sign => number.signum(),
        _ => f64::NAN,
    }
}
