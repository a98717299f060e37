//! Conditions from words: a recursive descent for brackets, a loop for operators.
//!
//! Only brackets, functions, `NOT` and minus signs go deeper, and those are counted; a chain of operators of one level is gathered in a
//! loop, however long it is.

use std::ops::Range;

use crate::check;
use crate::error::{RouteError, quoted};
use crate::function::{Function, Kind};
use crate::lexer::{Lexer, NO_PARAMETERS, NO_PATTERN, Token, braced_name, one_name};
use crate::names::{Name, Names};
use crate::nearest::did_you_mean;
use crate::tree::{Level, Link, Node, NodeId, Op, Spans, Tree};

/// How deep brackets, functions, `NOT` and minus signs may be nested in a condition.
pub const DEPTH_MAX: usize = 64;

/// Words that are no names, in any case.
pub(crate) const KEYWORDS: [&str; 7] = ["SELECT", "FROM", "WHERE", "INTO", "AND", "OR", "NOT"];
/// Literals, in lower case only.
const LITERALS: [(&str, Node, Kind); 4] = [
    ("true", Node::Bool(true), Kind::Bool),
    ("false", Node::Bool(false), Kind::Bool),
    ("null", Node::Null, Kind::Null),
    ("undefined", Node::Undefined, Kind::Undefined),
];

/// Whether a word is no name of a property unless it stands in braces.
pub(crate) fn is_reserved(word: &str) -> bool {
    let literals = LITERALS.iter().map(|(literal, ..)| literal);
    KEYWORDS.iter().chain(literals).any(|reserved| reserved.eq_ignore_ascii_case(word))
}

type Result<T> = std::result::Result<T, RouteError>;

/// The hint for `CASE WHEN a THEN b ELSE c END`. As there, `c` counts where `a` is undefined.
const NO_CASE: &str = "there is no `CASE`: write `((a ?? false) AND b) OR (NOT (a ?? false) AND c)`, with conditions for letters";

/// The hint for a function of another language.
fn instead_of(function: &str) -> Option<&'static str> {
    Some(match function.to_ascii_uppercase().as_str() {
        "IFNULL" | "COALESCE" | "NVL" | "ISNULL" => "write `a ?? b`",
        "CAST" | "TRY_CAST" | "CONVERT" | "TO_NUMBER" | "TONUMBER" | "NUMBER" | "INT" | "FLOAT"
        | "PARSEFLOAT" | "PARSEINT" => "write `as_number(a)`; a property is a string already",
        "IF" | "IIF" => NO_CASE,
        "NOW" | "GETDATE" | "GETUTCDATE" | "CURRENT_TIMESTAMP" | "CURDATE" | "SYSDATE" => {
            "a condition does not know the time; `$enqueuedTime` is when the broker took the message"
        }
        "EXISTS" => "write `is_defined(a)`",
        "LEN" | "CHAR_LENGTH" => "write `length(a)`",
        "LCASE" | "TOLOWER" => "write `lower(a)`",
        "UCASE" | "TOUPPER" => "write `upper(a)`",
        "INSTR" | "CHARINDEX" | "POSITION" | "LOCATE" => "write `index_of(a, b)`, which counts from 0",
        "REGEXP_LIKE" | "REGEXP_MATCH" | "MATCHES" | "LIKE" => NO_PATTERN,
        "MOD" => "write `a % b`",
        _ => return None,
    })
}

/// Whether a word is one of these, in any case.
pub(crate) fn is_one_of(word: &str, known: &[&str]) -> bool {
    known.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// What is between the first word of a route and its end.
pub(crate) struct Parser<'t> {
    pub(crate) text: &'t str,
    pub(crate) lexer: Lexer<'t>,
    /// The word to be read next, and its place.
    pub(crate) token: Token,
    pub(crate) span: Range<usize>,
    pub(crate) tree: Tree,
    pub(crate) names: Names,
    pub(crate) spans: Spans,
    /// What is known of each node.
    kinds: Vec<Kind>,
    depth: usize,
}

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str) -> Result<Self> {
        let mut lexer = Lexer::new(text);
        let (token, span) = lexer.next()?;
        let (tree, names) = (Tree::default(), Names::default());
        Ok(Self { text, lexer, token, span, tree, names, spans: Vec::new(), kinds: Vec::new(), depth: 0 })
    }

    /// The text of the word to be read next.
    pub(crate) fn word(&self) -> &'t str {
        &self.text[self.span.clone()]
    }

    pub(crate) fn is_keyword(&self, keyword: &str) -> bool {
        self.token == Token::Word && self.word().eq_ignore_ascii_case(keyword)
    }

    pub(crate) fn advance(&mut self) -> Result<()> {
        (self.token, self.span) = self.lexer.next()?;
        Ok(())
    }

    /// The word to be read next is wrong.
    pub(crate) fn unexpected(&self, expected: &str) -> RouteError {
        let found = match self.token {
            Token::End => "the route ends".to_owned(),
            _ => format!("{} stands", quoted(self.word())),
        };
        RouteError::new(self.span.clone(), format!("{found} where {expected} is expected"))
    }

    /// A whole condition, up to `INTO`.
    pub(crate) fn condition(&mut self) -> Result<()> {
        let root = self.expression(Level::Coalesce)?;
        self.expect_into("an operator or `INTO`")?;
        check::is_condition(self, root)
    }

    pub(crate) fn expect_into(&self, expected: &str) -> Result<()> {
        if self.is_keyword("INTO") {
            Ok(())
        } else {
            Err(self.unexpected(expected).hint_if(self.near_operator()))
        }
    }

    pub(crate) fn kind(&self, of: NodeId) -> Kind {
        self.kinds[of.at()]
    }

    pub(crate) fn span_of(&self, node: NodeId) -> Range<usize> {
        let Range { start, end } = self.spans[node.at()];
        start as usize..end as usize
    }

    pub(crate) fn push(&mut self, node: Node, kind: Kind, span: Range<usize>) -> NodeId {
        let short = |at| u32::try_from(at).expect("a route has at most ROUTE_LEN_MAX bytes");
        self.spans.push(short(span.start)..short(span.end));
        self.kinds.push(kind);
        self.tree.push(node)
    }

    pub(crate) fn op(&self) -> Option<Op> {
        match self.token {
            Token::Op(op) => Some(op),
            Token::Word if self.is_keyword("AND") => Some(Op::And),
            Token::Word if self.is_keyword("OR") => Some(Op::Or),
            _ => None,
        }
    }

    /// Operators of this level and of tighter ones.
    pub(crate) fn expression(&mut self, loosest: Level) -> Result<NodeId> {
        let mut first = self.operand()?;
        while let Some(level) = self.op().map(Op::level).filter(|level| *level >= loosest) {
            let mut kind = self.kind(first);
            let mut links = Vec::new();
            while let Some(op) = self.op().filter(|op| op.level() == level) {
                let place = self.span.clone();
                self.advance()?;
                let right = self.expression(level.tighter())?;
                let left = links.last().map_or(first, |link: &Link| link.right);
                kind = check::operator(self, op, place, (kind, left), right)?;
                links.push(Link { op, right });
            }
            first = self.chain(first, links, kind);
        }
        Ok(first)
    }

    /// `(a AND b) AND c` is `a AND b AND c`.
    fn chain(&mut self, first: NodeId, links: Vec<Link>, kind: Kind) -> NodeId {
        let last = links.last().expect("a chain has an operator").right;
        let span = self.span_of(first).start..self.span_of(last).end;
        let (first, before) = match self.tree.node(first) {
            Node::Chain(inner, before) => {
                let before = self.tree.links(*before);
                let is_one = before[0].op.level() == links[0].op.level();
                if is_one { (*inner, before.to_vec()) } else { (first, Vec::new()) }
            }
            _ => (first, Vec::new()),
        };
        let links = self.tree.push_links(before.into_iter().chain(links));
        self.push(Node::Chain(first, links), kind, span)
    }

    fn operand(&mut self) -> Result<NodeId> {
        let span = self.span.clone();
        match self.token.clone() {
            Token::Word if self.is_keyword("NOT") => self.not(span.start),
            Token::Word => self.named(span),
            Token::Op(Op::Minus) => self.minus(span.start),
            // Before a number, and nowhere else.
            Token::Op(Op::Plus) => {
                self.advance()?;
                let Token::Number(number) = self.token else { return Err(self.unexpected("a number")) };
                let span = span.start..self.span.end;
                self.leaf(Node::Number(number), Kind::Number, span)
            }
            Token::Number(number) => self.leaf(Node::Number(number), Kind::Number, span),
            Token::Text(text) => self.leaf(Node::Text(text.into()), Kind::Text, span),
            Token::Braced => {
                let name = braced_name(self.word());
                let system = name.strip_prefix('$');
                let name =
                    system.map_or_else(|| Name::Property(name.into()), |name| Name::System(name.into()));
                self.name(name, Kind::Text, span)
            }
            Token::System => self.name(Name::Either(self.word().into()), Kind::Text, span),
            Token::Body(steps) => self.name(Name::Body(steps), Kind::Any, span),
            Token::Open => self.deeper(|parser| {
                parser.advance()?;
                let inner = parser.expression(Level::Coalesce)?;
                parser.close(span.clone()).map(|_| inner)
            }),
            Token::End | Token::Op(_) | Token::Close | Token::Comma => {
                let is_parameter =
                    ["%s", "%d", "%("].iter().any(|it| self.text[span.start..].starts_with(it));
                let hint = if is_parameter {
                    NO_PARAMETERS
                } else {
                    "a value is a property, a literal, a function, or `$body.…`"
                };
                Err(self.unexpected("a value").hint(hint))
            }
        }
    }

    fn leaf(&mut self, node: Node, kind: Kind, span: Range<usize>) -> Result<NodeId> {
        self.advance()?;
        Ok(self.push(node, kind, span))
    }

    fn name(&mut self, name: Name, kind: Kind, span: Range<usize>) -> Result<NodeId> {
        let id = self.names.id_of(name);
        self.leaf(Node::Name(id), kind, span)
    }

    fn not(&mut self, start: usize) -> Result<NodeId> {
        let place = self.span.clone();
        let of = self.deeper(|parser| {
            parser.advance()?;
            parser.operand()
        })?;
        if let Some(error) = check::not_before_comparison(self, start, of)? {
            return Err(error);
        }
        check::is_truth(self, "`NOT`", of)?;
        let span = place.start.min(start)..self.span_of(of).end;
        Ok(self.push(Node::Not(of), Kind::Bool, span))
    }

    fn minus(&mut self, start: usize) -> Result<NodeId> {
        let of = self.deeper(|parser| {
            parser.advance()?;
            parser.operand()
        })?;
        if self.text[..start].ends_with('-') && !matches!(self.kind(of), Kind::Number | Kind::Any) {
            let error = RouteError::new(start - 1..start + 1, "`--` begins no comment");
            return Err(error.hint("a comment is written `/* … */`"));
        }
        // An argument of `is_defined` may be `-undefined` (IoT Edge, published cases `TestSuccess`).
        if self.kind(of) != Kind::Undefined {
            check::is_number(self, "`-`", of)?;
        }
        let span = start..self.span_of(of).end;
        let node = match self.tree.node(of) {
            Node::Number(number) => Node::Number(-number),
            _ => Node::Minus(of),
        };
        Ok(self.push(node, Kind::Number, span))
    }

    /// A literal, a function or a property.
    fn named(&mut self, span: Range<usize>) -> Result<NodeId> {
        let word = self.word();
        if let Some((literal, node, kind)) =
            LITERALS.into_iter().find(|(text, ..)| text.eq_ignore_ascii_case(word))
        {
            if literal != word {
                let error = RouteError::new(span, format!("`{literal}` is written in lower case"));
                let before = self.text[..self.span.start].trim_end();
                let is_compared = before.ends_with('=') || before.ends_with("<>");
                let last = self.tree.last().filter(|_| is_compared && matches!(node, Node::Bool(_)));
                let hint = match last {
                    Some(Node::Name(id)) if !matches!(self.names.get(*id), Name::Body(_)) => {
                        format!("properties are strings: write `'{literal}'`")
                    }
                    _ => format!("write `{literal}`; a property of that name is `{{{word}}}`"),
                };
                return Err(error.hint(hint));
            }
            return self.leaf(node, kind, span);
        }
        if is_reserved(word) {
            let name = format!("a property of that name is written `{{{word}}}`");
            let hint = match word.to_ascii_uppercase().as_str() {
                "INTO" => format!("a value is missing before it; {name}"),
                "SELECT" => {
                    format!("a condition sees one message and asks no other: write the values; {name}")
                }
                _ => name,
            };
            return Err(self.unexpected("a value").hint(hint));
        }
        self.advance()?;
        if self.token == Token::Open {
            return self.deeper(|parser| parser.call(word, span.clone()));
        }
        let id = self.names.id_of(Name::Property(word.into()));
        Ok(self.push(Node::Name(id), Kind::Text, span))
    }

    fn call(&mut self, word: &str, span: Range<usize>) -> Result<NodeId> {
        let Some(signature) = Function::named(word) else {
            let error = RouteError::new(span, format!("there is no function {}", quoted(word)));
            if let Some(instead) = instead_of(word) {
                return Err(error.hint(instead));
            }
            let all = || format!("there are {}", Function::names().collect::<Vec<_>>().join(", "));
            return Err(error.hint(did_you_mean(word, Function::names()).unwrap_or_else(all)));
        };
        let open = self.span.clone();
        self.advance()?;
        let mut args = Vec::new();
        while self.token != Token::Close {
            let arg = self.expression(Level::Coalesce)?;
            check::argument(self, signature, args.len(), arg)?;
            args.push(Link { op: Op::Coalesce, right: arg });
            match self.token {
                Token::Comma => self.advance()?,
                Token::Close => break,
                _ => return Err(self.unclosed(open)),
            }
            if self.token == Token::Close {
                return Err(self.unexpected("an argument"));
            }
        }
        let end = self.close(open)?;
        if !signature.takes_so_many(args.len()) {
            let error =
                RouteError::new(span.start..end, format!("`{}` takes {}", signature.name, signature.count()));
            return Err(error.hint(format!("it was given {}", args.len())));
        }
        let args = self.tree.push_links(args);
        Ok(self.push(Node::Call(signature.function, args), signature.gives, span.start..end))
    }

    /// Reads `)`, and tells where it ends.
    fn close(&mut self, open: Range<usize>) -> Result<usize> {
        if self.token != Token::Close {
            return Err(self.unclosed(open));
        }
        let end = self.span.end;
        self.advance()?;
        Ok(end)
    }

    fn unclosed(&self, open: Range<usize>) -> RouteError {
        if matches!(self.token, Token::End) || self.is_keyword("INTO") {
            return RouteError::new(open, "this bracket is not closed").hint("write `)`");
        }
        self.unexpected("an operator, `,` or `)`").hint_if(self.near_operator())
    }

    /// What was meant by a word, or a string, that stands where an operator does.
    fn near_operator(&self) -> Option<String> {
        if let Token::Text(_) = self.token {
            let quote = &self.text[self.span.start..=self.span.start];
            if self.text[..self.span.start].ends_with(quote) {
                return Some(format!("within a string a `{quote}` is written `\\{quote}`"));
            }
            let before = self.text[..self.span.start].trim_end();
            let word = before.rfind(|c: char| !c.is_alphanumeric()).map_or(before, |at| &before[at + 1..]);
            if before.len() == self.span.start && is_one_of(word, &["N", "E", "B", "X", "R", "U"]) {
                return Some(format!("a string has no letter before it: leave `{word}` out"));
            }
            if is_one_of(word, &["DATE", "TIME", "TIMESTAMP", "DATETIME", "INTERVAL"]) {
                return Some(format!("a time is a string: leave `{word}` out"));
            }
            return one_name(self.text, self.span.start).map(|name| format!("write `{name}`"));
        }
        if self.token != Token::Word {
            return None;
        }
        match self.word().to_ascii_uppercase().as_str() {
            "LIKE" | "RLIKE" | "REGEXP" | "MATCHES" => Some(NO_PATTERN.to_owned()),
            "ILIKE" => Some(
                "write `starts_with(lower(a), 'x')`, `ends_with(lower(a), 'x')` or `contains(lower(a), 'x')`"
                    .to_owned(),
            ),
            "NOT" => match self.word_after().to_ascii_uppercase().as_str() {
                "IN" => {
                    Some("write the comparisons with `AND` between them: `a != 'x' AND a != 'y'`".to_owned())
                }
                "BETWEEN" => Some("write `a < x OR a > y`".to_owned()),
                "LIKE" | "ILIKE" | "RLIKE" | "REGEXP" => Some(
                    "write `NOT starts_with(a, b)`, `NOT ends_with(a, b)` or `NOT contains(a, b)`".to_owned(),
                ),
                _ => {
                    Some("`NOT` stands before the condition that it turns round: `NOT (a = 'x')`".to_owned())
                }
            },
            "XOR" => Some("write `(a) != (b)`, with a condition in each bracket".to_owned()),
            "WHEN" | "THEN" | "ELSE" => Some(NO_CASE.to_owned()),
            "IS" => match self.word_after().to_ascii_uppercase().as_str() {
                "NULL" => Some("write `NOT is_defined(a) OR is_null(a)`".to_owned()),
                "NOT" => Some(
                    "write `is_defined(a) AND NOT is_null(a)` for `IS NOT NULL`, else `a != b`".to_owned(),
                ),
                _ => Some("write `a = b`".to_owned()),
            },
            "IN" | "BETWEEN" => Some("write the comparisons, with `AND` or `OR` between them".to_owned()),
            "MOD" => Some("write `%`".to_owned()),
            _ => did_you_mean(self.word(), ["AND", "OR", "INTO", "WHERE"]),
        }
    }

    /// The word behind the one that is to be read next.
    fn word_after(&self) -> &'t str {
        let rest = self.text[self.span.end..].trim_start();
        &rest[..rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len())]
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == DEPTH_MAX {
            let what =
                format!("brackets, functions, `NOT` and minus signs are nested more than {DEPTH_MAX} deep");
            return Err(RouteError::new(self.span.clone(), what)
                .hint("a chain of `AND`, `OR` or `+` needs no brackets"));
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }
}
