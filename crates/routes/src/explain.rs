//! Why a condition is not true, for people: the smallest expression that made it so, and what the message has there.

use std::ops::Range;

use crate::body::Unread;
use crate::condition::Truth;
use crate::error::quoted;
use crate::evaluate::{Evaluator, Lookup};
use crate::function::Function;
use crate::names::{Name, NameId, Names};
use crate::show::{Expression, number, text};
use crate::tree::{Level, Link, Node, NodeId, Op, Spans, Tree};
use crate::value::Value;

/// What is undefined only beside others.
const TOO_LONG: &str = "the texts that are made for it are too long together";
/// Most names whose values are told.
const NAMES_MAX: usize = 4;

/// What a condition comes to for a message, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// What it comes to.
    pub truth: Truth,
    /// The expression that decides it: its place in the text of the route, bytes.
    pub span: Range<usize>,
    /// The same, in one line and in one form.
    pub expression: String,
    /// Why it is what it is, a lower-case phrase.
    pub why: String,
}

impl Explanation {
    pub(crate) fn of<L: Lookup>(
        tree: &Tree,
        names: &Names,
        spans: &Spans,
        lookup: &L,
        unread: &dyn Fn() -> Option<Unread>,
    ) -> Self {
        let made = &mut String::new();
        let mut explainer = Explainer { evaluator: Evaluator { tree, lookup, made }, names, unread };
        let truth = explainer.evaluator.truth();
        let (node, why) = match truth {
            Truth::True => (tree.root(), explainer.values(tree.root())),
            Truth::False => explainer.not_true(tree.root()),
            Truth::Undefined => explainer.neither(tree.root()),
        };
        let Range { start, end } = spans[node.at()];
        let expression = Expression { tree, names, root: node }.to_string();
        Self { truth, span: start as usize..end as usize, expression, why }
    }
}

struct Explainer<'v, 'm, L> {
    evaluator: Evaluator<'v, 'm, L>,
    names: &'v Names,
    unread: &'v dyn Fn() -> Option<Unread>,
}

impl<'v, L: Lookup> Explainer<'v, '_, L> {
    fn tree(&self) -> &'v Tree {
        self.evaluator.tree
    }

    /// What an expression comes to by itself. Where texts are so long that there is no room for them together, that may be more than it
    /// came to within the whole.
    fn value(&mut self, node: NodeId) -> Value<'v> {
        self.evaluator.made.clear();
        self.evaluator.value(node)
    }

    /// What is false and decides.
    fn not_true(&mut self, node: NodeId) -> (NodeId, String) {
        if let Node::Chain(first, links) = self.tree().node(node) {
            let links = self.tree().links(*links);
            if links[0].op == Op::And {
                let rights = links.iter().map(|link| link.right);
                let mut operands = std::iter::once(*first).chain(rights);
                let is_false = operands.find(|operand| self.value(*operand).truth() == Truth::False);
                if let Some(operand) = is_false {
                    return self.not_true(operand);
                }
            }
        }
        (node, self.values(node))
    }

    /// What is undefined, and nothing beneath it is.
    fn undefined(&mut self, node: NodeId) -> (NodeId, String) {
        match self.tree().node(node) {
            Node::Undefined => (node, "`undefined` is written here".to_owned()),
            Node::Name(name) => (node, self.missing(*name, node)),
            Node::Not(of) => self.neither(*of),
            Node::Minus(of) => self.within(node, &[*of], "it is no number"),
            Node::Call(function, args) => {
                let args = self.tree().links(*args).iter().map(|arg| arg.right).collect::<Vec<_>>();
                let why = match function {
                    Function::AsNumber => "it is no number",
                    Function::Concat => "only strings are joined",
                    _ => "it has no value for these arguments",
                };
                self.within(node, &args, why)
            }
            Node::Chain(first, links) => self.undefined_chain(node, *first, self.tree().links(*links)),
            Node::Null | Node::Bool(_) | Node::Number(_) | Node::Text(_) => self.neither(node),
        }
    }

    fn undefined_chain(&mut self, node: NodeId, first: NodeId, links: &[Link]) -> (NodeId, String) {
        let rights = links.iter().map(|link| link.right);
        match links[0].op.level() {
            Level::Coalesce => self.neither(links[links.len() - 1].right),
            Level::And | Level::Or => {
                let mut operands = std::iter::once(first).chain(rights);
                let undecided = operands.find(|operand| self.value(*operand).truth() == Truth::Undefined);
                match undecided {
                    Some(operand) => self.neither(operand),
                    None => (node, TOO_LONG.to_owned()),
                }
            }
            level => {
                let operands = std::iter::once(first).chain(rights).collect::<Vec<_>>();
                let why = match level {
                    Level::Equality | Level::Order => "only two numbers or two strings have an order",
                    _ if links[0].op == Op::Join => "only strings are joined",
                    _ => "it is no number",
                };
                self.within(node, &operands, why)
            }
        }
    }

    /// What is neither true nor false where one of both is wanted.
    fn neither(&mut self, node: NodeId) -> (NodeId, String) {
        match self.value(node) {
            Value::Undefined => self.undefined(node),
            value => (node, format!("it is {}, neither true nor false", self.told(value))),
        }
    }

    /// An expression is undefined because one of these is, or by itself.
    fn within(&mut self, node: NodeId, operands: &[NodeId], why: &str) -> (NodeId, String) {
        match operands.iter().find(|operand| self.value(**operand) == Value::Undefined) {
            Some(undefined) => self.undefined(*undefined),
            None => (node, format!("{why}: {}", self.values(node))),
        }
    }

    fn missing(&self, name: NameId, node: NodeId) -> String {
        let shown = Expression { tree: self.tree(), names: self.names, root: node };
        match self.names.get(name) {
            Name::Property(name) => format!("property {} is not there", quoted(name)),
            Name::Either(name) => format!("system property {} is not there", quoted(name)),
            Name::System(name) => format!("system property `${name}` is not there"),
            Name::Body(_) => match (self.unread)() {
                Some(Unread::OtherType) => {
                    "the content type of the message is not application/json".to_owned()
                }
                Some(Unread::OtherEncoding) => {
                    "the content encoding is not UTF-8, UTF-16 or UTF-32".to_owned()
                }
                Some(Unread::Broken) => "the body is no JSON in the encoding it is said to have".to_owned(),
                None => format!("`{shown}` is an object or an array"),
            },
        }
    }

    /// What the names beneath an expression stand for.
    fn values(&mut self, node: NodeId) -> String {
        let mut nodes = Vec::new();
        self.names_beneath(node, &mut nodes);
        let shown = nodes.iter().take(NAMES_MAX).map(|node| {
            let value = self.value(*node);
            let name = Expression { tree: self.tree(), names: self.names, root: *node };
            format!("`{name}` is {}", self.told(value))
        });
        let all = shown.collect::<Vec<_>>().join(", ");
        match nodes.len() {
            0 => "it asks nothing of the message".to_owned(),
            count if count > NAMES_MAX => format!("{all}, …"),
            _ => all,
        }
    }

    /// Each name once, and one more than are told.
    fn names_beneath(&self, node: NodeId, found: &mut Vec<NodeId>) {
        let children = match self.tree().node(node) {
            Node::Name(_) => {
                if found.len() <= NAMES_MAX
                    && found.iter().all(|known| self.tree().node(*known) != self.tree().node(node))
                {
                    found.push(node);
                }
                return;
            }
            Node::Not(of) | Node::Minus(of) => return self.names_beneath(*of, found),
            Node::Chain(first, links) => {
                self.names_beneath(*first, found);
                *links
            }
            Node::Call(_, args) => *args,
            Node::Undefined | Node::Null | Node::Bool(_) | Node::Number(_) | Node::Text(_) => return,
        };
        self.tree().links(children).iter().for_each(|child| self.names_beneath(child.right, found));
    }

    fn told(&self, value: Value<'v>) -> String {
        match value {
            Value::Undefined => "undefined".to_owned(),
            Value::Missing => "not there".to_owned(),
            Value::Null => "null".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Number(value) => number(value),
            Value::Text(_) | Value::Made(_) => {
                let whole = value.text(self.evaluator.made).unwrap_or_default();
                let short = whole.chars().take(40).collect::<String>();
                let more = if short.len() < whole.len() { "…" } else { "" };
                format!("{}{more}", text(&short, '\''))
            }
        }
    }
}
