//! A condition in a table, as what must all be true of a message.
//!
//! The comparisons that most routes are made of are taken out of their tree, so that a hundred of them cost a hundred comparisons.

use std::cell::Cell;
use std::collections::HashMap;

use super::slots::Slots;
use crate::condition::Truth;
use crate::evaluate::{Evaluator, Lookup};
use crate::function::Function;
use crate::names::{Name, NameId, Names};
use crate::show::Expression;
use crate::subject::Subject;
use crate::tree::{Level, Node, NodeId, Op, Tree};
use crate::value::{Value, compare};

/// Expressions that are joined by AND.
pub(super) struct Conjunction {
    tree: Tree,
    atoms: Vec<Atom>,
}

enum Atom {
    /// `name = 'text'`
    Text { name: NameId, text: Box<str> },
    /// `as_number(name) > 5`, or without the function for what is a number already.
    Number { name: NameId, is_read: bool, op: Op, than: f64 },
    /// Anything else. The same expression has the same number in all routes.
    Other { node: NodeId, number: usize },
}

/// Expressions of a table, by their canonical text.
pub(super) type Numbers = HashMap<String, usize>;

/// What expressions came to for a message, by their numbers; nothing where nobody asked.
pub(super) type Known = Vec<Cell<Option<Truth>>>;

impl Conjunction {
    pub(super) fn of(tree: Tree, names: &Names, numbers: &mut Numbers) -> Self {
        let root = tree.root();
        let operands = match tree.node(root) {
            Node::Chain(first, links) if tree.links(*links)[0].op == Op::And => {
                let rights = tree.links(*links).iter().map(|link| link.right);
                std::iter::once(*first).chain(rights).collect()
            }
            _ => vec![root],
        };
        let mut atom = |node| {
            comparison(&tree, node).unwrap_or_else(|| {
                let next = numbers.len();
                let text = Expression { tree: &tree, names, root: node }.to_string();
                Atom::Other { node, number: *numbers.entry(text).or_insert(next) }
            })
        };
        let atoms = operands.into_iter().map(&mut atom).collect();
        Self { tree, atoms }
    }

    /// Takes out a property and the text that it must have, if one is wanted.
    pub(super) fn take_pivot(&mut self, names: &Names) -> Option<(NameId, Box<str>)> {
        // To look into a body is dear, and it may hold what is no text.
        let is_property = |name: NameId| !matches!(names.get(name), Name::Body(_));
        let is_pivot = |atom: &Atom| matches!(atom, Atom::Text { name, .. } if is_property(*name));
        let at = self.atoms.iter().position(is_pivot)?;
        let Atom::Text { name, text } = self.atoms.remove(at) else { unreachable!("it was looked for") };
        Some((name, text))
    }

    /// What it comes to, where the pivot that was taken out came to this.
    pub(super) fn truth<S: Subject + ?Sized>(
        &self,
        pivot: Truth,
        lookup: &Slots<'_, S>,
        made: &mut String,
    ) -> Truth {
        let mut truth = pivot;
        for atom in &self.atoms {
            match self.atom(atom, lookup, made) {
                Truth::True => {}
                Truth::False => return Truth::False,
                Truth::Undefined => truth = Truth::Undefined,
            }
        }
        truth
    }

    fn atom<S: Subject + ?Sized>(&self, atom: &Atom, lookup: &Slots<'_, S>, made: &mut String) -> Truth {
        let compared = match atom {
            Atom::Text { name, text } => compare(Op::Equal, lookup.value(*name), Value::Text(text), ""),
            Atom::Number { name, is_read, op, than } => {
                let value = match is_read {
                    true => Value::number_or_undefined(lookup.number(*name)),
                    false => lookup.value(*name),
                };
                compare(*op, value, Value::Number(*than), "")
            }
            Atom::Other { node, number } => {
                let known = &lookup.known[*number];
                return known.get().unwrap_or_else(|| {
                    made.clear();
                    let truth = Evaluator { tree: &self.tree, lookup, made }.value(*node).truth();
                    known.set(Some(truth));
                    truth
                });
            }
        };
        compared.truth()
    }
}

fn comparison(tree: &Tree, node: NodeId) -> Option<Atom> {
    let Node::Chain(left, links) = tree.node(node) else { return None };
    let [link] = tree.links(*links) else { return None };
    if !matches!(link.op.level(), Level::Equality | Level::Order) {
        return None;
    }
    let (left, right) = (tree.node(*left), tree.node(link.right));
    written(tree, link.op, left, right).or_else(|| written(tree, turned(link.op), right, left))
}

/// A name on the left and a literal on the right.
fn written(tree: &Tree, op: Op, left: &Node, right: &Node) -> Option<Atom> {
    match (left, right) {
        (Node::Name(name), Node::Text(text)) if op == Op::Equal => {
            Some(Atom::Text { name: *name, text: text.clone() })
        }
        (Node::Name(name), Node::Number(than)) => {
            Some(Atom::Number { name: *name, is_read: false, op, than: *than })
        }
        (Node::Call(Function::AsNumber, args), Node::Number(than)) => {
            match tree.node(tree.links(*args)[0].right) {
                Node::Name(name) => Some(Atom::Number { name: *name, is_read: true, op, than: *than }),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The operator that says the same with its sides turned.
fn turned(op: Op) -> Op {
    match op {
        Op::Less => Op::Greater,
        Op::LessOrEqual => Op::GreaterOrEqual,
        Op::Greater => Op::Less,
        Op::GreaterOrEqual => Op::LessOrEqual,
        same => same,
    }
}
