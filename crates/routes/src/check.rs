//! What can be known of a condition before a message is there.
//!
//! Literals, functions and operators have a kind that is known, and properties are always strings; only the body may hold anything. What
//! could never come true because of kinds that do not go together is an error here, and not undefined for ever.

use std::ops::Range;

use crate::error::RouteError;
use crate::expression::Parser;
use crate::function::{Kind, Signature, Takes};
use crate::lexer::{is_plain_name, one_name};
use crate::names::Name;
use crate::notes::body_path;
use crate::tree::{Level, Node, NodeId, Op};

type Result<T> = std::result::Result<T, RouteError>;

/// What an operator gives for a value of a kind on its left, whose last operand is told too, and for what is on its right.
pub(crate) fn operator(
    parser: &Parser<'_>,
    op: Op,
    place: Range<usize>,
    (left, last): (Kind, NodeId),
    right: NodeId,
) -> Result<Kind> {
    let name = format!("`{}`", op.text());
    let sides = (left, parser.kind(right));
    match op.level() {
        Level::Coalesce => coalesced(parser, place, sides, (last, right)),
        Level::Or | Level::And => {
            kind_is_truth(parser, &name, last, left)?;
            is_truth(parser, &name, right)?;
            Ok(Kind::Bool)
        }
        Level::Equality => compared(parser, op, place, sides, (last, right)),
        Level::Order => {
            for (node, kind) in [(last, sides.0), (right, sides.1)] {
                if kind == Kind::Bool {
                    let error = RouteError::new(
                        parser.span_of(node),
                        format!("{name} compares numbers or strings, and this is a bool"),
                    );
                    return Err(error.hint(match parser.tree.node(node) {
                        Node::Bool(_) => "a bool is compared with `=`",
                        Node::Not(_) => "a comparison stands in brackets after `NOT`: `NOT (a < 5)`",
                        _ => "two comparisons are written `1 < a AND a < 5`; a bool is compared with `=`",
                    }));
                }
            }
            compared(parser, op, place, sides, (last, right))
        }
        Level::Sum if op == Op::Join => {
            takes(parser, Takes::Text, &name, last, left)?;
            takes(parser, Takes::Text, &name, right, sides.1)?;
            Ok(Kind::Text)
        }
        Level::Sum | Level::Product | Level::Unary => {
            let taken = takes(parser, Takes::Number, &name, last, left)
                .and_then(|()| takes(parser, Takes::Number, &name, right, sides.1));
            let joins =
                |node| matches!(parser.tree.node(node), Node::Text(text) if text.parse::<f64>().is_err());
            if op == Op::Plus && (joins(last) || joins(right)) {
                return taken
                    .map_err(|error| error.hint("`+` adds numbers; strings are joined with `||`"))
                    .map(|()| Kind::Number);
            }
            let with_name = |error: RouteError| match one_name(parser.text, place.start) {
                Some(name) => {
                    let number = error.hint.as_ref().and_then(|hint| hint.strip_prefix("write "));
                    let number = number.map_or(String::new(), |number| format!(", else {number}"));
                    error.hint(format!("write `{name}` if that is one name{number}"))
                }
                None => error,
            };
            taken.map_err(with_name).map(|()| Kind::Number)
        }
    }
}

/// What `??` gives.
fn coalesced(
    parser: &Parser<'_>,
    place: Range<usize>,
    sides: (Kind, Kind),
    nodes: (NodeId, NodeId),
) -> Result<Kind> {
    match sides {
        (Kind::Undefined, kind) | (kind, Kind::Undefined) => Ok(kind),
        (left, right) if left == right => Ok(left),
        (Kind::Any, _) | (_, Kind::Any) => Ok(Kind::Any),
        (left, right) => {
            let what = format!("`??` has {} on its left and {} on its right", left.words(), right.words());
            let (left_text, right_text) = (shown(parser, nodes.0), shown(parser, nodes.1));
            let in_the_body = body_instead(parser, nodes.0).or_else(|| body_instead(parser, nodes.1));
            let nodes = (parser.tree.node(nodes.0), parser.tree.node(nodes.1));
            let hint = match (sides, nodes) {
                ((Kind::Text, Kind::Number), (Node::Name(_), _)) => {
                    format!("properties are strings: write `as_number({left_text}) ?? {right_text}`")
                }
                ((Kind::Text, Kind::Bool), (Node::Name(_), Node::Bool(_))) => {
                    format!("properties are strings: write `({left_text} = 'true') ?? {right_text}`")
                }
                _ => "it binds least of all: `(a ?? 'x') = 'x'`".to_owned(),
            };
            Err(RouteError::new(place, what).hint(hint).hint_if(in_the_body))
        }
    }
}

fn compared(
    parser: &Parser<'_>,
    op: Op,
    place: Range<usize>,
    sides: (Kind, Kind),
    nodes: (NodeId, NodeId),
) -> Result<Kind> {
    let (left, right) = sides;
    let may_be =
        left == right || [left, right].iter().any(|kind| matches!(kind, Kind::Any | Kind::Undefined));
    if may_be {
        return Ok(Kind::Bool);
    }
    if let Some(error) = not_before(parser, op, place.clone(), nodes) {
        return Err(error);
    }
    let never = if op.level() == Level::Equality { "are never equal" } else { "have no order" };
    let (op, kinds) = (op.text(), format!("{} with {}", left.words(), right.words()));
    let error = RouteError::new(place, format!("`{op}` compares {kinds}, which {never}"));
    let is_joined = |node| match parser.tree.node(node) {
        Node::Chain(_, links) => parser.tree.links(*links)[0].op == Op::Join,
        _ => false,
    };
    let in_the_body = body_instead(parser, nodes.0).or_else(|| body_instead(parser, nodes.1));
    let error = match (left, right) {
        (Kind::Bool, _) if is_joined(nodes.0) => {
            error.hint("`||` joins strings: write `OR` between conditions")
        }
        (Kind::Null, _) => with_null(parser, error, op, nodes.1),
        (_, Kind::Null) => with_null(parser, error, op, nodes.0),
        (Kind::Text, Kind::Number) => as_number(parser, error, nodes.0),
        (Kind::Number, Kind::Text) => as_number(parser, error, nodes.1),
        (Kind::Text, Kind::Bool) => with_bool(parser, error, op, nodes, (nodes.1, nodes.0)),
        (Kind::Bool, Kind::Text) => with_bool(parser, error, op, nodes, (nodes.0, nodes.1)),
        _ => error,
    };
    Err(error.hint_if(in_the_body))
}

/// The hint for a property that was probably meant as a value of the body: `body.x`.
fn body_instead(parser: &Parser<'_>, node: NodeId) -> Option<String> {
    let Node::Name(id) = parser.tree.node(node) else { return None };
    body_path(parser.names.get(*id))
        .map(|path| format!("a value of the body is written with `$`: write `{path}`"))
}

/// Adds the hint for a comparison of a bool with a string.
fn with_bool(
    parser: &Parser<'_>,
    error: RouteError,
    op: &str,
    nodes: (NodeId, NodeId),
    (bool, text): (NodeId, NodeId),
) -> RouteError {
    match (parser.tree.node(bool), parser.tree.node(text)) {
        (Node::Bool(value), Node::Name(_) | Node::Call(..) | Node::Chain(..)) => {
            let side = |node| if node == bool { format!("'{value}'") } else { shown(parser, node) };
            error.hint(format!("properties are strings: write `{} {op} {}`", side(nodes.0), side(nodes.1)))
        }
        (_, Node::Text(word)) if matches!(&**word, "true" | "false") => {
            let is_so = (&**word == "true") == (op == "=");
            let (not, text) = (if is_so { "" } else { "NOT " }, shown(parser, bool));
            let is_one = is_so || matches!(parser.tree.node(bool), Node::Call(..));
            error.hint(if is_one { format!("write `{not}{text}`") } else { format!("write `{not}({text})`") })
        }
        _ => error,
    }
}

/// The error of `NOT a = 'x'`, which is `(NOT a) = 'x'`.
fn not_before(
    parser: &Parser<'_>,
    op: Op,
    place: Range<usize>,
    nodes: (NodeId, NodeId),
) -> Option<RouteError> {
    let Node::Not(inner) = parser.tree.node(nodes.0) else { return None };
    let (inner, op) = (shown(parser, *inner), op.text());
    let error = RouteError::new(
        place,
        format!("`NOT` binds more tightly than `{op}`: this is `(NOT {inner}) {op} …`"),
    );
    Some(error.hint(format!("write `NOT ({inner} {op} {})`", shown(parser, nodes.1))))
}

/// As [`not_before`], of `NOT` before a string or a number; `None`: no comparison follows.
pub(crate) fn not_before_comparison(
    parser: &mut Parser<'_>,
    start: usize,
    of: NodeId,
) -> Result<Option<RouteError>> {
    let is_truth = !matches!(parser.kind(of), Kind::Text | Kind::Number);
    let Some(op) = parser.op().filter(|op| !is_truth && matches!(op.level(), Level::Equality | Level::Order))
    else {
        return Ok(None);
    };
    let place = parser.span.clone();
    parser.advance()?;
    let right = parser.expression(op.level().tighter())?;
    let span = start..parser.span_of(of).end;
    let not = parser.push(Node::Not(of), Kind::Bool, span);
    Ok(not_before(parser, op, place, (not, right)))
}

/// The text of an expression, shortened.
fn shown(parser: &Parser<'_>, node: NodeId) -> String {
    short(&parser.text[parser.span_of(node)])
}

/// Adds the hint for a comparison of this expression with a literal null, which asks whether the expression has no value. A property has no
/// value where it is not there or null, any other expression where it is undefined.
fn with_null(parser: &Parser<'_>, error: RouteError, op: &str, node: NodeId) -> RouteError {
    let function = match parser.tree.node(node) {
        Node::Name(_) => "is_string",
        Node::Call(..) | Node::Chain(..) | Node::Not(_) | Node::Minus(_) => "is_defined",
        Node::Undefined | Node::Null | Node::Bool(_) | Node::Number(_) | Node::Text(_) => return error,
    };
    let not = match op {
        "=" => "NOT ",
        "!=" => "",
        _ => return error,
    };
    error.hint(format!("write `{not}{function}({})`", short(&parser.text[parser.span_of(node)])))
}

/// What a condition is has to be true or false.
pub(crate) fn is_condition(parser: &Parser<'_>, root: NodeId) -> Result<()> {
    kind_is_truth(parser, "a condition", root, parser.kind(root))
}

pub(crate) fn is_truth(parser: &Parser<'_>, who: &str, node: NodeId) -> Result<()> {
    kind_is_truth(parser, who, node, parser.kind(node))
}

fn kind_is_truth(parser: &Parser<'_>, who: &str, node: NodeId, kind: Kind) -> Result<()> {
    if !matches!(kind, Kind::Text | Kind::Number) {
        return Ok(());
    }
    let what = format!("{who} wants true or false, and this is {}", kind.words());
    let error = RouteError::new(parser.span_of(node), what);
    let text = short(&parser.text[parser.span_of(node)]);
    let error = match (kind, parser.tree.node(node)) {
        (_, Node::Name(_)) if who == "`NOT`" => {
            error.hint(format!("properties are strings: write `({text} = 'true')`"))
        }
        (_, Node::Name(_)) => error.hint(format!("properties are strings: write `{text} = 'true'`")),
        (_, Node::Text(_)) => error.hint("compare it, or write `true` without quotes"),
        _ => error.hint("compare it: `… > 0`"),
    };
    Err(error.hint_if(body_instead(parser, node)))
}

pub(crate) fn is_number(parser: &Parser<'_>, who: &str, node: NodeId) -> Result<()> {
    takes(parser, Takes::Number, who, node, parser.kind(node))
}

/// The argument of a function at a place, the first is 0.
pub(crate) fn argument(parser: &Parser<'_>, signature: &Signature, at: usize, arg: NodeId) -> Result<()> {
    // Too many are told of when all have been read.
    takes(parser, signature.takes_at(at), &format!("`{}`", signature.name), arg, parser.kind(arg))
}

fn takes(parser: &Parser<'_>, takes: Takes, who: &str, node: NodeId, kind: Kind) -> Result<()> {
    if takes.admits(kind) {
        return Ok(());
    }
    let what = format!("{who} takes {}, and this is {}", takes.words(), kind.words());
    let error = RouteError::new(parser.span_of(node), what);
    let error = match (takes, kind) {
        (Takes::Number, Kind::Text) => as_number(parser, error, node),
        (Takes::Text | Takes::NumberOrText, Kind::Number) => {
            error.hint("a literal string is written in quotes")
        }
        _ => error,
    };
    Err(error.hint_if(body_instead(parser, node)))
}

fn as_number(parser: &Parser<'_>, error: RouteError, node: NodeId) -> RouteError {
    match parser.tree.node(node) {
        Node::Text(text) if text.parse::<f64>().is_ok() => error.hint("write the number without quotes"),
        Node::Text(name) if is_plain_name(name) && parser.text[parser.span_of(node)].starts_with('"') => {
            let hint = "this string is no number; a property is written without quotes: `as_number(";
            error.hint(format!("{hint}{name})`"))
        }
        Node::Text(_) => error.hint("this string is no number"),
        Node::Name(id) if is_a_time(parser.names.get(*id)) => {
            error.hint("it is a text such as `'2026-11-30T09:20:00.000Z'`: compare it with one like that")
        }
        _ => error.hint(format!("write `as_number({})`", short(&parser.text[parser.span_of(node)]))),
    }
}

/// Whether it is a system property that is a time, as text that compares as times do.
fn is_a_time(name: &Name) -> bool {
    let name = match name {
        Name::Either(name) => name.trim_start_matches('$'),
        Name::System(name) => name,
        Name::Property(_) | Name::Body(_) => return false,
    };
    ["enqueuedTime", "expiryTimeUtc"].iter().any(|time| time.eq_ignore_ascii_case(name))
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().nth(40).is_some() {
        format!("{}…", line.chars().take(40).collect::<String>())
    } else {
        line
    }
}
