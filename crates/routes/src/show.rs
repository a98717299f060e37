//! A condition as text, in one form: what is read from it again is the same.

use std::fmt::{self, Display, Write as _};

use crate::names::Names;
use crate::tree::{Level, Node, NodeId, Op, Tree};

/// An expression with what is beneath it.
pub(crate) struct Expression<'t> {
    pub(crate) tree: &'t Tree,
    pub(crate) names: &'t Names,
    pub(crate) root: NodeId,
}

impl Expression<'_> {
    fn of(&self, root: NodeId) -> Self {
        Self { root, ..*self }
    }

    /// How tightly it binds.
    fn level(&self) -> Level {
        match self.tree.node(self.root) {
            Node::Chain(_, links) => self.tree.links(*links)[0].op.level(),
            _ => Level::Unary,
        }
    }

    /// In brackets, where it binds more loosely than what is around it wants.
    fn within(&self, f: &mut fmt::Formatter<'_>, wanted: Level) -> fmt::Result {
        if self.level() < wanted { write!(f, "({self})") } else { self.fmt(f) }
    }

    fn args(&self, f: &mut fmt::Formatter<'_>, args: impl Iterator<Item = NodeId>) -> fmt::Result {
        for (at, arg) in args.enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            self.of(arg).fmt(f)?;
        }
        f.write_char(')')
    }
}

impl Display for Expression<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tree.node(self.root) {
            Node::Undefined => f.write_str("undefined"),
            Node::Null => f.write_str("null"),
            Node::Bool(value) => write!(f, "{value}"),
            Node::Number(value) => f.write_str(&number(*value)),
            Node::Text(value) => f.write_str(&text(value, '\'')),
            Node::Name(name) => self.names.get(*name).fmt(f),
            Node::Not(of) => {
                f.write_str("NOT ")?;
                self.of(*of).within(f, Level::Unary)
            }
            Node::Minus(of) => {
                f.write_char('-')?;
                self.of(*of).within(f, Level::Unary)
            }
            Node::Call(function, args) => {
                write!(f, "{}(", function.signature().name)?;
                self.args(f, self.tree.links(*args).iter().map(|arg| arg.right))
            }
            Node::Chain(first, links) => {
                let links = self.tree.links(*links);
                self.of(*first).within(f, links[0].op.level())?;
                links.iter().try_for_each(|link| {
                    let op: Op = link.op;
                    write!(f, " {} ", op.text())?;
                    self.of(link.right).within(f, op.level().tighter())
                })
            }
        }
    }
}

/// A number, the shorter of both ways to write it.
pub(crate) fn number(value: f64) -> String {
    let (plain, exponent) = (format!("{value}"), format!("{value:e}"));
    if exponent.len() < plain.len() { exponent } else { plain }
}

/// A string between quotes: those that are wanted, unless that saves escapes.
pub(crate) fn text(value: &str, wanted: char) -> String {
    let other = if wanted == '"' { '\'' } else { '"' };
    let quote = if value.contains(wanted) && !value.contains(other) { other } else { wanted };
    let mut text = String::with_capacity(value.len() + 2);
    text.push(quote);
    for c in value.chars() {
        match c {
            c if c == quote || c == '\\' => text.extend(['\\', c]),
            // Nothing in it ends the line.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                write!(text, "\\u{:04X}", u32::from(c)).expect("a string takes everything");
            }
            c => text.push(c),
        }
    }
    text.push(quote);
    text
}
