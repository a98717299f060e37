//! The words of a route, one after the other.
//!
//! What other languages write and this one does not (`==`, `&&`, `!`) is known here, so that the error says what to write instead.

use std::ops::Range;

use crate::error::{RouteError, quoted};
use crate::names::{STEPS_MAX, Step};
use crate::tree::Op;

/// A word of a route.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    End,
    /// A keyword, a function or an application property.
    Word,
    /// `{name}`: an application property.
    Braced,
    /// `$name`, which is not `$body`.
    System,
    Body(Box<[Step]>),
    /// Not negative.
    Number(f64),
    Text(String),
    Op(Op),
    Open,
    Close,
    Comma,
}

/// Reads a text word by word.
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
}

type Result<T> = std::result::Result<T, RouteError>;

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The next word and its place.
    pub(crate) fn next(&mut self) -> Result<(Token, Range<usize>)> {
        self.skip_blanks()?;
        let start = self.at;
        let token = match self.peek() {
            None => Token::End,
            Some(c) if starts_name(c) => {
                self.name();
                Token::Word
            }
            Some(c) if c.is_ascii_digit() => self.number()?,
            Some('.') if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => self.number()?,
            Some('\'' | '"') => Token::Text(self.string()?),
            Some('{') => self.braced()?,
            Some('$') => self.dollar()?,
            Some(c) => self.sign(c)?,
        };
        Ok((token, start..self.at))
    }

    /// What stands up to the next blank: a path may hold anything else.
    pub(crate) fn path(&mut self) -> (&'t str, Range<usize>) {
        self.at = self.text.len() - self.rest().trim_start().len();
        let start = self.at;
        self.at += self.rest().find(char::is_whitespace).unwrap_or(self.rest().len());
        (&self.text[start..self.at], start..self.at)
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, len: usize) {
        self.at += len;
    }

    fn take_while(&mut self, is_it: impl Fn(char) -> bool) {
        self.at += self.rest().find(|c| !is_it(c)).unwrap_or(self.rest().len());
    }

    fn skip_blanks(&mut self) -> Result<()> {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest().starts_with("/*") {
                return Ok(());
            }
            let Some(len) = self.rest()[2..].find("*/") else {
                let error = RouteError::new(self.at..self.at + 2, "this comment does not end");
                return Err(error.hint("write `*/` at its end"));
            };
            self.take(len + 4);
        }
    }

    /// A name; dots are in it, but not at its end.
    fn name(&mut self) {
        loop {
            self.take_while(is_in_name);
            let mut ahead = self.rest().chars();
            if ahead.next() != Some('.') || !ahead.next().is_some_and(starts_name) {
                return;
            }
            self.take(1);
        }
    }

    fn number(&mut self) -> Result<Token> {
        let start = self.at;
        let is_hex = self.rest().get(..2).is_some_and(|start| start.eq_ignore_ascii_case("0x"));
        if is_hex {
            self.take(2);
        }
        if is_hex {
            self.take_while(|c| c.is_ascii_hexdigit());
        } else {
            self.decimal();
        }
        if self.peek().is_some_and(|c| is_in_name(c) || c == '.')
            || self.text[start..self.at].ends_with(['x', 'X'])
        {
            self.take_while(|c| is_in_name(c) || c == '.');
            let error = RouteError::new(
                start..self.at,
                format!("{} is no number", quoted(&self.text[start..self.at])),
            );
            return Err(error.hint("numbers are written `5`, `0.5`, `1e-3` or `0x1F`"));
        }
        let text = &self.text[start..self.at];
        let number = match is_hex {
            true => u64::from_str_radix(&text[2..], 16).map(|number| number as f64).unwrap_or(f64::INFINITY),
            false => text.parse::<f64>().expect("digits, a point and an exponent are a number"),
        };
        if number.is_infinite() {
            let error = RouteError::new(start..self.at, "this number is too large");
            return Err(error.hint("the largest is about 1.8e308, in hexadecimal 0xFFFFFFFFFFFFFFFF"));
        }
        Ok(Token::Number(number))
    }

    /// Digits, a point and digits, an exponent.
    fn decimal(&mut self) {
        let is_digit = |c: char| c.is_ascii_digit();
        self.take_while(is_digit);
        if self.rest().strip_prefix('.').is_some_and(|rest| rest.starts_with(is_digit)) {
            self.take(1);
            self.take_while(is_digit);
        }
        let Some(rest) = self.rest().strip_prefix(['e', 'E']) else { return };
        let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        if digits.starts_with(is_digit) {
            self.at = self.text.len() - digits.len();
            self.take_while(is_digit);
        }
    }

    fn string(&mut self) -> Result<String> {
        let start = self.at;
        let quote = self.peek().expect("a quote stands here");
        self.take(1);
        let mut value = String::new();
        loop {
            let len = self.rest().find([quote, '\\']);
            let Some(len) = len else {
                let error = RouteError::new(start..self.text.len(), "this string does not end");
                let hint = format!("write `{quote}` at its end; within it, `\\{quote}`");
                let name =
                    one_name(self.text, start).map(|name| format!("write `{name}` if that is one name"));
                return Err(error.hint(hint).hint_if(name));
            };
            value.push_str(&self.rest()[..len]);
            self.take(len);
            if self.peek() == Some(quote) {
                self.take(1);
                return Ok(value);
            }
            value.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Result<char> {
        let start = self.at;
        self.take(1);
        let next = self.peek();
        if let Some(c @ ('\\' | '\'' | '"')) = next {
            self.take(1);
            return Ok(c);
        }
        if matches!(next, Some('u' | 'U')) {
            let first = self.unit();
            let pair = first
                .filter(|unit| (0xD800..0xDC00).contains(unit))
                .filter(|_| self.rest().starts_with("\\u"));
            let c = match (pair, first) {
                (Some(high), _) => {
                    self.take(1);
                    let units = [high, self.unit().unwrap_or_default()];
                    char::decode_utf16(units).next().and_then(std::result::Result::ok)
                }
                (None, Some(unit)) => char::from_u32(u32::from(unit)),
                (None, None) => None,
            };
            if let Some(c) = c {
                return Ok(c);
            }
            let error = RouteError::new(start..self.at, "this is no character");
            return Err(error.hint(
                "write `\\u` and four hexadecimal digits, for example `\\u00E4`; beyond FFFF two of them",
            ));
        }
        self.take(next.map_or(0, char::len_utf8));
        let error = RouteError::new(start..self.at, "there is no such escape");
        Err(error.hint(r#"there are `\'`, `\"`, `\\` and `\u00E4`; a backslash is written `\\`"#))
    }

    /// The number of `u00E4`.
    fn unit(&mut self) -> Option<u16> {
        let digits =
            self.rest().get(1..5).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok());
        self.take(if unit.is_some() { 5 } else { 1 });
        unit
    }

    fn braced(&mut self) -> Result<Token> {
        let start = self.at;
        let len = self.rest().find('}').filter(|len| !self.rest()[..*len].contains(char::is_control));
        let Some(len) = len else {
            let error = RouteError::new(start..start + 1, "this brace is not closed");
            return Err(error.hint("write the name of an application property in braces: `{my-name}`"));
        };
        self.take(len + 1);
        let name = braced_name(&self.text[start..self.at]);
        if name.is_empty() || name == "$" {
            return Err(RouteError::new(start..self.at, "there is no name in these braces"));
        }
        if is_of_body(name) {
            let error = RouteError::new(start..self.at, "a value of the body is not written in braces");
            return Err(error.hint(format!("write `{name}`")));
        }
        Ok(Token::Braced)
    }

    fn dollar(&mut self) -> Result<Token> {
        let start = self.at;
        self.take(1);
        if !self.peek().is_some_and(starts_name) {
            let error = RouteError::new(start..self.at, "a name has to follow `$`");
            if self.peek().is_some_and(|c| c.is_ascii_digit() || c == '{') {
                return Err(error.hint(NO_PARAMETERS));
            }
            return Err(error.hint("a system property is `$messageId`, a value of the body `$body.name`"));
        }
        let name = self.at;
        self.take_while(is_in_name);
        if self.text[name..self.at].eq_ignore_ascii_case("body") {
            return self.steps(start);
        }
        self.at = name;
        self.name();
        // A system property is text, from which nothing is subtracted: `-` is part of its name, as in `$dt-subject` and `$dt-dataschema`
        // (Azure IoT Hub, "IoT Hub message routing query syntax", "System properties").
        while self.rest().strip_prefix('-').is_some_and(|rest| rest.starts_with(starts_name)) {
            self.take(1);
            self.name();
        }
        Ok(Token::System)
    }

    /// `.a.b[0]["c d"]`
    fn steps(&mut self, start: usize) -> Result<Token> {
        let mut steps = Vec::new();
        loop {
            let from = self.at;
            let ahead = self.rest().strip_prefix('.');
            if ahead.is_some_and(|rest| rest.starts_with(is_in_member)) {
                self.take(1);
                self.take_while(is_in_member);
                steps.push(Step::Key(self.text[from + 1..self.at].into()));
            } else if self.rest().starts_with('[') {
                self.take(1);
                steps.push(self.bracketed(from)?);
            } else if ahead.is_some() {
                let error = RouteError::new(from..from + 1, "a name has to follow this point");
                return Err(
                    error.hint("a path is `$body.a.b[0].c`; odd names are written `$body[\"odd name\"]`")
                );
            } else {
                break;
            }
        }
        if steps.len() > STEPS_MAX {
            return Err(RouteError::new(start..self.at, format!("a path has at most {STEPS_MAX} steps")));
        }
        Ok(Token::Body(steps.into()))
    }

    fn bracketed(&mut self, from: usize) -> Result<Step> {
        let step = if self.rest().starts_with(['"', '\'']) {
            Some(Step::Key(self.string()?.into()))
        } else {
            let digits = self.at;
            self.take_while(|c| c.is_ascii_digit());
            self.text[digits..self.at].parse().ok().map(Step::Item)
        };
        let step = step.filter(|_| self.rest().starts_with(']'));
        self.take(usize::from(self.rest().starts_with(']')));
        step.ok_or_else(|| {
            let error = RouteError::new(from..self.at, "this is no step into a body");
            error.hint(
                "write the number of an item, the first is 0, or a name in quotes: `[0]`, `[\"odd name\"]`",
            )
        })
    }

    /// Whether the value on the right of an operator, or an argument, is missing before this place.
    fn is_operand_wanted(&self) -> bool {
        self.text[..self.at].trim_end().ends_with(['=', '<', '>', '(', ','])
    }

    /// `[name]`, as T-SQL writes a name.
    fn in_square_brackets(&self) -> Option<&'t str> {
        let (name, _) = self.rest().strip_prefix('[')?.split_once(']')?;
        (name.starts_with(starts_name) && name.chars().all(|c| !c.is_control() && c != '}')).then_some(name)
    }

    /// Operators and brackets.
    fn sign(&mut self, c: char) -> Result<Token> {
        for (text, write) in STRANGE {
            if self.rest().starts_with(text) {
                let error =
                    RouteError::new(self.at..self.at + text.len(), format!("there is no operator `{text}`"));
                return Err(error.hint(write));
            }
        }
        for (text, token) in SIGNS {
            if self.rest().starts_with(text) {
                self.take(text.len());
                return Ok(token);
            }
        }
        let what = format!("{} means nothing here", quoted(c.encode_utf8(&mut [0; 4])));
        let error = RouteError::new(self.at..self.at + c.len_utf8(), what);
        let name = one_name(self.text, self.at).map(|name| format!("write `{name}` if that is one name"));
        let hint = match c {
            '`' => return Err(error.hint("a property is written as it is, a string in `'` or `\"`")),
            '‘' | '’' | '‚' | '“' | '”' | '„' | '«' | '»' => {
                return Err(error.hint("strings stand in `'` or `\"`"));
            }
            ';' => return Err(error.hint("leave it out: a route ends with its sink")),
            '!' => "write `NOT`, or `!=` between two values",
            '|' => "write `OR` between conditions, `||` to join strings",
            ':' | '@' if self.rest()[1..].starts_with(starts_name) => NO_PARAMETERS,
            '?' if self.is_operand_wanted() => NO_PARAMETERS,
            '?' => "write `??`",
            '[' if let Some(name) = self.in_square_brackets() => {
                return Err(error.hint(format!("a property is written in braces: `{{{name}}}`")));
            }
            '[' | ']' | '.' => "a path is written `$body.a.b[0]`, without blanks",
            _ => {
                "an application property with such a character in its name is written in braces: `{my-name}`"
            }
        };
        Err(error.hint(hint).hint_if(name))
    }
}

/// What is not written, and what to write.
const STRANGE: [(&str, &str); 13] = [
    ("::", "a property is a string; its number is `as_number(a)`"),
    ("===", "write `=`"),
    ("==", "write `=`"),
    ("&&", "write `AND`"),
    ("!==", "write `!=`"),
    ("&", "write `AND`"),
    ("<=>", "write `=`, `<` or `>`"),
    ("=>", "write `>=`"),
    ("=<", "write `<=`"),
    ("**", "write `power(a, b)`"),
    ("=~", NO_PATTERN),
    ("!~", NO_PATTERN),
    ("~", NO_PATTERN),
];

/// The hint for what stands for a value that comes later, as `:sev`, `@sev`, `?` or `$1`.
pub(crate) const NO_PARAMETERS: &str =
    "a route has no parameters: write the value itself, as `'high'` or `5`";

/// The hint for a pattern.
pub(crate) const NO_PATTERN: &str = "write `starts_with(a, b)`, `ends_with(a, b)` or `contains(a, b)`";

/// What is, the longer before the shorter.
const SIGNS: [(&str, Token); 17] = [
    ("!=", Token::Op(Op::NotEqual)),
    ("<>", Token::Op(Op::NotEqual)),
    ("<=", Token::Op(Op::LessOrEqual)),
    (">=", Token::Op(Op::GreaterOrEqual)),
    ("||", Token::Op(Op::Join)),
    ("??", Token::Op(Op::Coalesce)),
    ("=", Token::Op(Op::Equal)),
    ("<", Token::Op(Op::Less)),
    (">", Token::Op(Op::Greater)),
    ("+", Token::Op(Op::Plus)),
    ("-", Token::Op(Op::Minus)),
    ("*", Token::Op(Op::Times)),
    ("/", Token::Op(Op::Divide)),
    ("%", Token::Op(Op::Modulo)),
    ("(", Token::Open),
    (")", Token::Close),
    (",", Token::Comma),
];

/// How a name with a character like `-`, `!` or `'` at this place is written, where it stands there without braces or quotes.
pub(crate) fn one_name(text: &str, at: usize) -> Option<String> {
    let is_outside = |c: char| c.is_whitespace() || c.is_control() || "()[]{}<>=,?|*/%+\"\\`".contains(c);
    let (before, behind) = text.split_at(at);
    let mark = behind.chars().next().filter(|mark| !is_outside(*mark))?.len_utf8();
    if !before.ends_with(is_in_name) || !behind[mark..].starts_with(is_in_name) {
        return None;
    }
    let start =
        before.rfind(is_outside).map_or(0, |at| at + before[at..].chars().next().map_or(0, char::len_utf8));
    let name = &text[start..at + behind.find(is_outside).unwrap_or(behind.len())];
    let steps = match name.get(..6) {
        Some(body) if body.eq_ignore_ascii_case("$body.") => Some(("$body", &name[6..])),
        // The end of a path behind an item.
        _ => name.strip_prefix('.').map(|steps| ("", steps)),
    };
    Some(match steps {
        Some((body, steps)) => {
            let steps = steps.split('.').map(|step| Step::Key(step.into()).to_string());
            format!("{body}{}", steps.collect::<String>())
        }
        None => format!("{{{name}}}"),
    })
}

/// The name in `{ name }`.
pub(crate) fn braced_name(braced: &str) -> &str {
    braced[1..braced.len() - 1].trim()
}

/// Whether it is a path into the body: `$body`, `$body.a`, `$body[0]`.
fn is_of_body(name: &str) -> bool {
    let body = name.get(..5).filter(|start| start.eq_ignore_ascii_case("$body"));
    body.is_some() && !name[5..].starts_with(is_in_name)
}

fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_in_member(c: char) -> bool {
    is_in_name(c) || c == '$'
}

/// Whether an application property of this name is written without braces.
pub(crate) fn is_plain_name(name: &str) -> bool {
    !crate::expression::is_reserved(name)
        && name.split('.').all(|part| part.starts_with(starts_name) && part.chars().all(is_in_name))
}

/// Whether a member of this name is written behind a point.
pub(crate) fn is_member(key: &str) -> bool {
    !key.is_empty() && key.chars().all(is_in_member)
}
