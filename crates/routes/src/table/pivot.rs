//! Routes from one source, by what they certainly want.
//!
//! Most conditions are, or begin with, `property = 'text'`. Where the property says another text the whole is false, since false wins an
//! AND; so one look at the property leaves out all routes that want other texts. What is not decided so is evaluated: the result
//! never differs from evaluating every route.

use std::collections::HashMap;

use super::RouteId;
use crate::evaluate::Lookup;
use crate::names::{Name, NameId, Names};
use crate::tree::{Node, NodeId, Op, Tree};
use crate::value::Value;

/// Routes from one source.
#[derive(Default)]
pub(super) struct Group {
    without_condition: Vec<RouteId>,
    /// Those that have no pivot.
    others: Vec<RouteId>,
    pivots: Vec<Pivot>,
}

/// Routes that want a text of one property.
struct Pivot {
    property: NameId,
    by_text: HashMap<Box<str>, Vec<RouteId>>,
    all: Vec<RouteId>,
}

impl Group {
    pub(super) fn add(&mut self, route: RouteId, condition: Option<&Tree>, names: &Names) {
        let Some(tree) = condition else { return self.without_condition.push(route) };
        let Some((property, text)) = pivot(tree, names) else { return self.others.push(route) };
        let at = self.pivots.iter().position(|pivot| pivot.property == property).unwrap_or_else(|| {
            self.pivots.push(Pivot { property, by_text: HashMap::new(), all: Vec::new() });
            self.pivots.len() - 1
        });
        let pivot = &mut self.pivots[at];
        pivot.by_text.entry(text.into()).or_default().push(route);
        pivot.all.push(route);
    }

    pub(super) fn without_condition(&self) -> &[RouteId] {
        &self.without_condition
    }

    /// Each route whose condition may be something else than false.
    pub(super) fn each_candidate(&self, lookup: &impl Lookup, mut look: impl FnMut(RouteId)) {
        for pivot in &self.pivots {
            let candidates = match lookup.value(pivot.property) {
                Value::Text(text) => pivot.by_text.get(text).map_or(&[][..], Vec::as_slice),
                // The comparison is undefined, and the rest may still be false.
                _ => &pivot.all,
            };
            candidates.iter().for_each(|route| look(*route));
        }
        self.others.iter().for_each(|route| look(*route));
    }
}

/// A property and the text without which a condition is false.
fn pivot<'t>(tree: &'t Tree, names: &Names) -> Option<(NameId, &'t str)> {
    let root = tree.root();
    wanted(tree, names, root).or_else(|| {
        let Node::Chain(first, links) = tree.node(root) else { return None };
        let links = tree.links(*links);
        let operands = std::iter::once(*first).chain(links.iter().map(|link| link.right));
        let mut operands = operands.filter(|_| links[0].op == Op::And);
        operands.find_map(|operand| wanted(tree, names, operand))
    })
}

/// `property = 'text'`, or the other way round.
fn wanted<'t>(tree: &'t Tree, names: &Names, node: NodeId) -> Option<(NameId, &'t str)> {
    let Node::Chain(left, links) = tree.node(node) else { return None };
    let [link] = tree.links(*links) else { return None };
    let (name, text) = match (link.op, tree.node(*left), tree.node(link.right)) {
        (Op::Equal, Node::Name(name), Node::Text(text)) | (Op::Equal, Node::Text(text), Node::Name(name)) => {
            (name, text)
        }
        _ => return None,
    };
    // To look into a body is dear, and it may hold what is no text.
    (!matches!(names.get(*name), Name::Body(_))).then_some((*name, text))
}
