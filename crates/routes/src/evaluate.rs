//! Evaluation: three-valued, from left to right, no further than needed.
//!
//! Recursion follows the tree, which is no deeper than its text was allowed to be; chains are loops.

use crate::condition::Truth;
use crate::function::Function;
use crate::names::NameId;
use crate::tree::{Level, Link, Links, Node, NodeId, Op, Tree};
use crate::value::{Made, Value, arithmetic, compare, number_of};

/// Most bytes of text that an expression may make for one message; beyond it, what it makes is undefined.
pub const TEXT_LEN_MAX: usize = 1 << 20;

/// Where values of names come from.
pub(crate) trait Lookup {
    fn value(&self, name: NameId) -> Value<'_>;

    /// The number that a property says.
    fn number(&self, name: NameId) -> Option<f64> {
        match self.value(name) {
            Value::Text(text) => number_of(text),
            value => value.as_number(),
        }
    }
}

/// One condition and one message.
pub(crate) struct Evaluator<'v, 'm, L> {
    pub(crate) tree: &'v Tree,
    pub(crate) lookup: &'v L,
    /// The texts that were made.
    pub(crate) made: &'m mut String,
}

impl<'v, L: Lookup> Evaluator<'v, '_, L> {
    /// What the whole comes to.
    pub(crate) fn truth(&mut self) -> Truth {
        self.made.clear();
        self.value(self.tree.root()).truth()
    }

    pub(crate) fn value(&mut self, of: NodeId) -> Value<'v> {
        match self.tree.node(of) {
            Node::Undefined => Value::Undefined,
            Node::Null => Value::Null,
            Node::Bool(value) => Value::Bool(*value),
            Node::Number(value) => Value::Number(*value),
            Node::Text(value) => Value::Text(value),
            Node::Name(name) => self.lookup.value(*name),
            Node::Not(of) => Value::of_truth(!self.value(*of).truth()),
            Node::Minus(of) => Value::number_or_undefined(self.value(*of).as_number().map(|value| -value)),
            Node::Chain(first, links) => self.chain(*first, *links),
            Node::Call(function, args) => self.call(*function, self.tree.links(*args)),
        }
    }

    fn chain(&mut self, first: NodeId, links: Links) -> Value<'v> {
        let links = self.tree.links(links);
        match links[0].op.level() {
            Level::And => self.junction(first, links, Truth::False),
            Level::Or => self.junction(first, links, Truth::True),
            Level::Coalesce => {
                let mut value = self.value(first);
                for link in links {
                    if !value.is_defined() {
                        value = self.value(link.right);
                    }
                }
                value
            }
            _ => {
                let made = self.made.len();
                let mut left = self.value(first);
                for link in links {
                    let right = self.value(link.right);
                    left = self.operation(link.op, left, right);
                }
                self.keep(made, left)
            }
        }
    }

    /// Gives back the room of what was made for a value that is no text.
    fn keep(&mut self, made: usize, value: Value<'v>) -> Value<'v> {
        if !matches!(value, Value::Made(_)) {
            self.made.truncate(made);
        }
        value
    }

    /// `AND` and `OR`: one operand of the winning kind decides.
    fn junction(&mut self, first: NodeId, links: &[Link], wins: Truth) -> Value<'v> {
        let mut truth = !wins;
        let made = self.made.len();
        let rights = links.iter().map(|link| link.right);
        for operand in std::iter::once(first).chain(rights) {
            let operand = self.value(operand).truth();
            // What one operand makes takes no room from the next.
            self.made.truncate(made);
            if operand == wins {
                return Value::of_truth(wins);
            }
            if operand == Truth::Undefined {
                truth = Truth::Undefined;
            }
        }
        Value::of_truth(truth)
    }

    /// An operator between two values.
    fn operation(&mut self, op: Op, left: Value<'v>, right: Value<'v>) -> Value<'v> {
        match op.level() {
            Level::Equality | Level::Order => compare(op, left, right, self.made),
            _ if op == Op::Join => self.join(left, right),
            _ => arithmetic(op, left, right),
        }
    }

    fn call(&mut self, function: Function, args: &[Link]) -> Value<'v> {
        let made = self.made.len();
        let value = self.called(function, args);
        self.keep(made, value)
    }

    fn called(&mut self, function: Function, args: &[Link]) -> Value<'v> {
        match (function, args) {
            (Function::Concat, [first, rest @ ..]) => {
                let mut joined = self.value(first.right);
                for arg in rest {
                    let next = self.value(arg.right);
                    joined = self.join(joined, next);
                }
                joined
            }
            // The number of a property is looked up: many routes ask for it.
            (Function::AsNumber, [arg]) => match self.tree.node(arg.right) {
                Node::Name(name) => Value::number_or_undefined(self.lookup.number(*name)),
                _ => {
                    let value = self.value(arg.right);
                    self.function(Function::AsNumber, &[value])
                }
            },
            _ => {
                let mut values = [Value::Undefined; 3];
                for (value, arg) in values.iter_mut().zip(args) {
                    *value = self.value(arg.right);
                }
                self.function(function, &values[..args.len().min(3)])
            }
        }
    }

    /// Null is the empty string here.
    fn join(&mut self, left: Value<'v>, right: Value<'v>) -> Value<'v> {
        let text = |value: Value<'v>| if value.is_null() { Value::Text("") } else { value };
        let (left, right) = (text(left), text(right));
        let from = match left {
            // What was made last is made longer.
            Value::Made(made) if made.to == self.made.len() => made.from,
            _ => {
                let from = self.made.len();
                if self.append(left).is_none() {
                    return Value::Undefined;
                }
                from
            }
        };
        match self.append(right) {
            Some(()) => Value::Made(Made { from, to: self.made.len() }),
            None => Value::Undefined,
        }
    }

    /// Behind what was made so far.
    pub(crate) fn append(&mut self, value: Value<'v>) -> Option<()> {
        let len = value.text(self.made)?.len();
        if self.made.len() + len > TEXT_LEN_MAX {
            return None;
        }
        match value {
            Value::Text(text) => self.made.push_str(text),
            Value::Made(Made { from, to }) => self.made.extend_from_within(from..to),
            _ => {}
        }
        Some(())
    }
}
