//! A condition as a tree in two vectors.
//!
//! Nodes point to others by number, and a chain of operators of one level (`a AND b AND c`) is one node with many links. So neither
//! evaluating nor dropping a condition follows a pointer for each operator, and what is long but flat is not deep: the tree is as
//! deep as its text has brackets, at most [`DEPTH_MAX`](crate::DEPTH_MAX) times the number of levels.

use std::ops::Range;

use crate::function::Function;
use crate::names::NameId;

/// A node, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId(u32);

/// Some links, one beside the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Links {
    from: u32,
    to: u32,
}

/// An operator and what stands on its right; an argument of a function, where the operator says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) op: Op,
    pub(crate) right: NodeId,
}

/// One expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Undefined,
    Null,
    Bool(bool),
    /// Finite.
    Number(f64),
    Text(Box<str>),
    Name(NameId),
    Not(NodeId),
    Minus(NodeId),
    /// Operators of one level, from left to right; at least one.
    Chain(NodeId, Links),
    Call(Function, Links),
}

/// An operator between two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Coalesce,
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Join,
    Times,
    Divide,
    Modulo,
}

/// How tightly an operator binds, loosest first. Those of one level are read from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Coalesce,
    Or,
    And,
    Equality,
    Order,
    Sum,
    Product,
    Unary,
}

impl Op {
    pub(crate) fn level(self) -> Level {
        match self {
            Self::Coalesce => Level::Coalesce,
            Self::Or => Level::Or,
            Self::And => Level::And,
            Self::Equal | Self::NotEqual => Level::Equality,
            Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => Level::Order,
            Self::Plus | Self::Minus | Self::Join => Level::Sum,
            Self::Times | Self::Divide | Self::Modulo => Level::Product,
        }
    }

    /// As it is written.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Coalesce => "??",
            Self::Or => "OR",
            Self::And => "AND",
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Join => "||",
            Self::Times => "*",
            Self::Divide => "/",
            Self::Modulo => "%",
        }
    }
}

impl Level {
    /// The next tighter one.
    pub(crate) fn tighter(self) -> Self {
        match self {
            Self::Coalesce => Self::Or,
            Self::Or => Self::And,
            Self::And => Self::Equality,
            Self::Equality => Self::Order,
            Self::Order => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Unary => Self::Unary,
        }
    }
}

/// All nodes of a condition. Children stand before their parents, the root is the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    links: Vec<Link>,
}

impl Tree {
    pub(crate) fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.root()
    }

    pub(crate) fn push_links(&mut self, links: impl IntoIterator<Item = Link>) -> Links {
        let from = self.links.len();
        self.links.extend(links);
        let number = |at| u32::try_from(at).expect("a route has at most ROUTE_LEN_MAX bytes");
        Links { from: number(from), to: number(self.links.len()) }
    }

    /// The last node.
    pub(crate) fn root(&self) -> NodeId {
        NodeId(u32::try_from(self.nodes.len() - 1).expect("a route has at most ROUTE_LEN_MAX bytes"))
    }

    /// The node that was pushed last.
    pub(crate) fn last(&self) -> Option<&Node> {
        self.nodes.last()
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0 as usize]
    }

    pub(crate) fn links(&self, links: Links) -> &[Link] {
        &self.links[links.from as usize..links.to as usize]
    }

    pub(crate) fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut()
    }
}

impl NodeId {
    pub(crate) fn at(self) -> usize {
        self.0 as usize
    }
}

/// Where each node stands in the text of its route, bytes.
pub(crate) type Spans = Vec<Range<u32>>;
