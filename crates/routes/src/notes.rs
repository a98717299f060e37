//! Notes about a condition that can be read and yet seldom means what it says.
//!
//! An application property may have any name, and a condition may compare two constants. So neither is an error: routes that were
//! published for IoT Edge do both. A note names the part that is probably a slip, and what to write instead.

use crate::condition::Truth;
use crate::evaluate::{Evaluator, Lookup};
use crate::expression::is_one_of;
use crate::lexer::is_plain_name;
use crate::names::{Name, NameId, Names};
use crate::nearest::nearest;
use crate::show::Expression;
use crate::tree::{Level, Node, NodeId, Op, Tree};
use crate::value::Value;

/// The system properties that a message of this broker has (docs/routes.md, "In the broker").
const SYSTEM: [&str; 14] = [
    "contentType",
    "contentEncoding",
    "messageId",
    "correlationId",
    "userId",
    "appId",
    "type",
    "replyTo",
    "expiration",
    "connectionDeviceId",
    "connectionModuleId",
    "enqueuedTime",
    "outputName",
    "inputName",
];
/// System properties whose names an application property is unlikely to have.
const SYSTEM_ONLY: [&str; 5] =
    ["contentType", "contentEncoding", "connectionDeviceId", "connectionModuleId", "enqueuedTime"];
/// Words that other languages write before the name of a property, beside an alias of one letter.
const PREFIXES: [&str; 7] =
    ["msg", "message", "properties", "props", "header", "headers", "applicationProperties"];
/// Names of the time in SQL.
const NOW: [&str; 7] = [
    "CURRENT_TIMESTAMP",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "SYSDATE",
    "SYSTIMESTAMP",
];

/// The notes about a condition: first those about names, then those about comparisons that are the same for every message.
pub(crate) fn notes(tree: &Tree, names: &Names) -> Vec<String> {
    let mut notes = names.iter().filter_map(of_name).collect::<Vec<_>>();
    let mut constants = Constants { tree, names, notes: &mut notes };
    if constants.look(tree.root()) {
        constants.note(tree.root());
    }
    notes
}

/// The path into the body that was probably meant by an application property: `$body.x` by `body.x`.
pub(crate) fn body_path(name: &Name) -> Option<String> {
    let Name::Property(name) = name else { return None };
    without_prefix(name).filter(|meant| meant.starts_with('$'))
}

/// The name without `message.`, `properties.` and the like; with `$` where it is one of the body.
fn without_prefix(name: &str) -> Option<String> {
    let (first, rest) = name.split_once('.')?;
    if first.eq_ignore_ascii_case("body") {
        return Some(format!("$body.{rest}"));
    }
    let is_prefix = first.chars().count() == 1 || is_one_of(first, &PREFIXES);
    is_prefix.then(|| without_prefix(rest).unwrap_or_else(|| rest.to_owned()))
}

fn of_name(name: &Name) -> Option<String> {
    match name {
        Name::Property(property) => {
            let what = format!("`{name}` is an application property");
            if let Some(meant) = without_prefix(property) {
                let kind =
                    if meant.starts_with('$') { "a value of the body" } else { "one without a prefix" };
                return Some(format!("{what}; {kind} is `{meant}`"));
            }
            if is_one_of(property, &NOW) {
                let time = "`$enqueuedTime` is when the broker took the message";
                return Some(format!("{what}, and a condition does not know the time; {time}"));
            }
            let known = SYSTEM_ONLY.into_iter().find(|known| known.eq_ignore_ascii_case(property))?;
            Some(format!("{what}; the system property is `${known}`"))
        }
        Name::Either(property) => {
            let property = &property[1..];
            if is_one_of(property, &SYSTEM) {
                return None;
            }
            let meant = near(property).unwrap_or_else(|| property.to_owned());
            let what =
                format!("`{name}` is no system property, only an application property may be called so");
            Some(format!("{what}; did you mean `{meant}`?"))
        }
        Name::System(property) => {
            if is_one_of(property, &SYSTEM) {
                return None;
            }
            let what = format!("`{name}` is no system property, and so undefined for every message");
            let known = || format!("there are {}", SYSTEM.map(|known| format!("`{{${known}}}`")).join(", "));
            let hint = near(property).map(|meant| match meant.starts_with("$body") {
                true => format!("did you mean `{meant}`?"),
                false => format!("did you mean `{{{meant}}}`?"),
            });
            Some(format!("{what}; {}", hint.unwrap_or_else(known)))
        }
        Name::Body(_) => None,
    }
}

/// The system property, or the path into the body, whose name is nearest, with its `$`.
fn near(name: &str) -> Option<String> {
    let (first, rest) = name.find('.').map_or((name, ""), |at| name.split_at(at));
    let body = ["body"].into_iter().filter(|_| !rest.is_empty());
    let known = SYSTEM.into_iter().filter(|_| rest.is_empty()).chain(body);
    nearest(first, known).map(|near| format!("${near}{rest}"))
}

/// A message without anything: a constant asks nothing of it.
struct Nothing;

impl Lookup for Nothing {
    fn value(&self, _: NameId) -> Value<'_> {
        Value::Undefined
    }
}

struct Constants<'c> {
    tree: &'c Tree,
    names: &'c Names,
    notes: &'c mut Vec<String>,
}

impl Constants<'_> {
    /// Whether an expression asks nothing of a message. Notes the largest ones that do not, where others beside them do.
    fn look(&mut self, node: NodeId) -> bool {
        let parts = match self.tree.node(node) {
            Node::Name(_) => return false,
            Node::Undefined | Node::Null | Node::Bool(_) | Node::Number(_) | Node::Text(_) => return true,
            Node::Not(of) | Node::Minus(of) => vec![*of],
            Node::Chain(first, _) => std::iter::once(*first).chain(self.rights(node)).collect(),
            Node::Call(..) => self.rights(node).collect(),
        };
        let constant = parts.into_iter().filter(|part| self.look(*part)).collect::<Vec<_>>();
        if constant.len() == self.parts(node) {
            return true;
        }
        constant.iter().for_each(|part| self.note(*part));
        self.with_undefined(node, &constant);
        false
    }

    fn rights(&self, node: NodeId) -> impl Iterator<Item = NodeId> + use<'_> {
        let links = match self.tree.node(node) {
            Node::Chain(_, links) | Node::Call(_, links) => self.tree.links(*links),
            _ => &[],
        };
        links.iter().map(|link| link.right)
    }

    fn parts(&self, node: NodeId) -> usize {
        let is_call = matches!(self.tree.node(node), Node::Call(..));
        self.rights(node).count() + usize::from(!is_call)
    }

    fn comparison(&self, node: NodeId) -> Option<(NodeId, Op, NodeId)> {
        let Node::Chain(first, links) = self.tree.node(node) else { return None };
        let [link] = self.tree.links(*links) else { return None };
        matches!(link.op.level(), Level::Equality | Level::Order).then_some((*first, link.op, link.right))
    }

    fn shown(&self, root: NodeId) -> String {
        Expression { tree: self.tree, names: self.names, root }.to_string()
    }

    /// Notes an expression that is no literal `true` or `false` and comes to the same for every message.
    fn note(&mut self, node: NodeId) {
        let compared = self.comparison(node);
        let made = &mut String::new();
        let value = Evaluator { tree: self.tree, lookup: &Nothing, made }.value(node);
        let truth = match value {
            _ if matches!(self.tree.node(node), Node::Bool(_)) => return,
            Value::Bool(true) => Truth::True,
            Value::Bool(false) => Truth::False,
            Value::Undefined if compared.is_some() => Truth::Undefined,
            _ => return,
        };
        let sides = compared.map(|(left, _, right)| [left, right]).into_iter().flatten();
        let name = sides.chain(self.rights(node)).find_map(|side| match self.tree.node(side) {
            Node::Text(text) if is_plain_name(text) => Some(text),
            _ => None,
        });
        let hint = name.map(|name| format!("; a property is written without quotes: `{name}`"));
        let shown = self.shown(node);
        self.notes.push(format!("`{shown}` is {truth} for every message{}", hint.unwrap_or_default()));
    }

    /// Notes a comparison with a literal `undefined`, which is never true.
    fn with_undefined(&mut self, node: NodeId, constant: &[NodeId]) {
        let Some((left, op, right)) = self.comparison(node) else { return };
        if !constant.iter().any(|part| matches!(self.tree.node(*part), Node::Undefined)) {
            return;
        }
        let other = self.shown(if constant.contains(&left) { right } else { left });
        let hint = match op {
            Op::Equal => format!("; write `NOT is_defined({other})`"),
            Op::NotEqual => format!("; write `is_defined({other})`"),
            _ => String::new(),
        };
        let shown = self.shown(node);
        self.notes.push(format!("`{shown}` is undefined for every message{hint}"));
    }
}
