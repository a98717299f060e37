//! A route: `[SELECT *] FROM source [WHERE condition] INTO sink`.

use std::fmt;
use std::str::FromStr;

use crate::condition::Condition;
use crate::error::{RouteError, quoted};
use crate::expression::Parser;
use crate::lexer::Token;
use crate::nearest::did_you_mean;
use crate::sink::{Sink, WITH_BRACKETS};
use crate::source::Source;

/// Longest text of a route, bytes.
pub const ROUTE_LEN_MAX: usize = 32 << 10;

/// Which messages go where.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// Where they come from.
    pub source: Source,
    /// What has to be true of them; nothing is true of all.
    pub condition: Option<Condition>,
    /// Where a copy goes.
    pub sink: Sink,
}

type Result<T> = std::result::Result<T, RouteError>;

impl Route {
    /// Reads a route, and checks all that can be known without a message.
    ///
    /// # Errors
    /// [`RouteError`], the first that is found.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > ROUTE_LEN_MAX {
            return Err(too_long("the route is longer than"));
        }
        let mut parser = Parser::new(text)?;
        if parser.is_keyword("SELECT") {
            parser.advance()?;
            parser.star()?;
        }
        let source = parser.source()?;
        let has_condition = parser.is_keyword("WHERE");
        if has_condition {
            parser.advance()?;
            parser.condition()?;
        } else {
            parser.expect_into("`WHERE` or `INTO`")?;
        }
        parser.advance()?;
        let sink = parser.sink()?;
        if parser.token != Token::End {
            return Err(parser.unexpected("the end of the route").hint_if(after_sink(&parser)));
        }
        let condition = has_condition.then(|| Condition::new(parser.tree, parser.names, parser.spans));
        let route = Self { source, condition, sink };
        // What is printed has to be a route, too. At the most a byte, a control character, becomes six.
        if text.len() > ROUTE_LEN_MAX / 8 && route.to_string().len() > ROUTE_LEN_MAX {
            return Err(too_long("written out, the route is longer than"));
        }
        Ok(route)
    }
}

fn too_long(what: &str) -> RouteError {
    let error = RouteError::new(0..0, format!("{what} {ROUTE_LEN_MAX} bytes"));
    error.hint("split it into several routes into the same sink")
}

fn after_sink(parser: &Parser<'_>) -> Option<&'static str> {
    parser.is_keyword("WHERE").then_some("the order is FROM, WHERE, INTO")
}

impl Parser<'_> {
    fn star(&mut self) -> Result<()> {
        if self.token != Token::Op(crate::tree::Op::Times) {
            return Err(self
                .unexpected("`*`")
                .hint("`SELECT *` says nothing more than `FROM` does; leave it out"));
        }
        self.advance()
    }

    fn source(&mut self) -> Result<Source> {
        if !self.is_keyword("FROM") {
            let near = Some(self.word()).filter(|_| self.token == Token::Word);
            let near = near.and_then(|word| did_you_mean(word, ["FROM", "SELECT"]));
            return Err(self
                .unexpected("`FROM`")
                .hint("a route is `FROM /messages/* INTO $upstream`")
                .hint_if(near));
        }
        // No blanks are left out by the lexer here, and no comments: `/*` is a path.
        let (path, span) = self.lexer.path();
        if path.is_empty() {
            return Err(RouteError::new(span, "a path has to follow `FROM`").hint("`/*` is everything"));
        }
        let source = Source::parse(path, span)?;
        self.advance()?;
        Ok(source)
    }

    fn sink(&mut self) -> Result<Sink> {
        if self.token == Token::System && self.word().eq_ignore_ascii_case("$upstream") {
            self.advance()?;
            return Ok(Sink::Upstream);
        }
        let known = WITH_BRACKETS
            .into_iter()
            .find(|(name, _)| self.token == Token::Word && name.eq_ignore_ascii_case(self.word()));
        let Some((name, make)) = known else {
            let names = WITH_BRACKETS.map(|(name, _)| name).into_iter().chain(["$upstream"]);
            let all = "there are `$upstream`, `BrokeredEndpoint(\"/modules/M/inputs/I\")`, `Queue(\"name\")`, `Endpoint(\"name\")`";
            let near = did_you_mean(self.word(), names);
            let error = match self.token {
                Token::Word | Token::System => {
                    RouteError::new(self.span.clone(), format!("there is no sink {}", quoted(self.word())))
                }
                _ => self.unexpected("a sink"),
            };
            return Err(error.hint(all).hint_if(near));
        };
        self.advance()?;
        let hint = format!("write `{name}(\"…\")`");
        if self.token != Token::Open {
            return Err(self.unexpected("`(`").hint(hint));
        }
        self.advance()?;
        let Token::Text(text) = self.token.clone() else {
            return Err(self.unexpected("a name in quotes").hint(hint));
        };
        let sink = make(text.into());
        if let Some((what, hint)) = sink.fault() {
            return Err(RouteError::new(self.span.clone(), what).hint(hint));
        }
        self.advance()?;
        if self.token != Token::Close {
            return Err(self.unexpected("`)`").hint(hint));
        }
        self.advance()?;
        Ok(sink)
    }
}

impl FromStr for Route {
    type Err = RouteError;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

/// In one line and in one form: what is read from it is the same route.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FROM {}", self.source)?;
        if let Some(condition) = &self.condition {
            write!(f, " WHERE {condition}")?;
        }
        write!(f, " INTO {}", self.sink)
    }
}
