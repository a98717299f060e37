//! The functions of conditions: what they take and what they give. What they do is in `calls`.

/// A function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Function {
    Abs,
    Exp,
    Power,
    Square,
    Ceiling,
    Floor,
    Sign,
    Sqrt,
    AsNumber,
    IsBool,
    IsDefined,
    IsNull,
    IsNumber,
    IsString,
    Concat,
    Length,
    Lower,
    Upper,
    Substring,
    IndexOf,
    StartsWith,
    EndsWith,
    Contains,
}

/// What is known of a value before a message is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Anything: it is in the body.
    Any,
    Null,
    Undefined,
    Bool,
    Number,
    /// Or null, or missing: a property.
    Text,
}

/// What an argument may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Takes {
    Number,
    Text,
    NumberOrText,
    Anything,
}

/// How a function is called.
pub(crate) struct Signature {
    pub(crate) function: Function,
    pub(crate) name: &'static str,
    /// One for each argument.
    pub(crate) takes: &'static [Takes],
    /// So many of them may be left out.
    pub(crate) optional: usize,
    /// The last may come again and again.
    pub(crate) repeats: bool,
    pub(crate) gives: Kind,
}

impl Function {
    pub(crate) fn named(name: &str) -> Option<&'static Signature> {
        SIGNATURES.iter().find(|signature| signature.name.eq_ignore_ascii_case(name))
    }

    pub(crate) fn signature(self) -> &'static Signature {
        SIGNATURES
            .iter()
            .find(|signature| signature.function == self)
            .expect("every function has a signature")
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        SIGNATURES.iter().map(|signature| signature.name)
    }
}

impl Signature {
    pub(crate) fn takes_so_many(&self, count: usize) -> bool {
        count >= self.takes.len() - self.optional && (self.repeats || count <= self.takes.len())
    }

    /// What the argument at a place may be.
    pub(crate) fn takes_at(&self, at: usize) -> Takes {
        self.takes[at.min(self.takes.len() - 1)]
    }

    /// In words: `two arguments`.
    pub(crate) fn count(&self) -> String {
        let words = ["no", "one", "two", "three"];
        let (least, most) = (self.takes.len() - self.optional, self.takes.len());
        match (self.repeats, least == most) {
            (true, _) => format!("{} or more arguments", words[least]),
            (_, true) if most == 1 => "one argument".to_owned(),
            (_, true) => format!("{} arguments", words[most]),
            (_, false) => format!("{} or {} arguments", words[least], words[most]),
        }
    }
}

impl Takes {
    /// Whether a value that is known to be of this kind may be right.
    pub(crate) fn admits(self, kind: Kind) -> bool {
        match self {
            Self::Anything => true,
            Self::Number => matches!(kind, Kind::Any | Kind::Number),
            Self::Text => matches!(kind, Kind::Any | Kind::Text),
            Self::NumberOrText => matches!(kind, Kind::Any | Kind::Number | Kind::Text),
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Number => "a number",
            Self::Text => "a string",
            Self::NumberOrText => "a string or a number",
            Self::Anything => "anything",
        }
    }
}

impl Kind {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Any => "something in the body",
            Self::Null => "null",
            Self::Undefined => "undefined",
            Self::Bool => "a bool",
            Self::Number => "a number",
            Self::Text => "a string",
        }
    }
}

const N: Takes = Takes::Number;
const T: Takes = Takes::Text;

const fn of(function: Function, name: &'static str, takes: &'static [Takes], gives: Kind) -> Signature {
    Signature { function, name, takes, optional: 0, repeats: false, gives }
}

const SIGNATURES: [Signature; 23] = [
    of(Function::Abs, "abs", &[N], Kind::Number),
    of(Function::Exp, "exp", &[N], Kind::Number),
    of(Function::Power, "power", &[N, N], Kind::Number),
    of(Function::Square, "square", &[N], Kind::Number),
    of(Function::Ceiling, "ceiling", &[N], Kind::Number),
    of(Function::Floor, "floor", &[N], Kind::Number),
    of(Function::Sign, "sign", &[N], Kind::Number),
    of(Function::Sqrt, "sqrt", &[N], Kind::Number),
    of(Function::AsNumber, "as_number", &[Takes::NumberOrText], Kind::Number),
    of(Function::IsBool, "is_bool", &[Takes::Anything], Kind::Bool),
    of(Function::IsDefined, "is_defined", &[Takes::Anything], Kind::Bool),
    of(Function::IsNull, "is_null", &[Takes::Anything], Kind::Bool),
    of(Function::IsNumber, "is_number", &[Takes::Anything], Kind::Bool),
    of(Function::IsString, "is_string", &[Takes::Anything], Kind::Bool),
    Signature { repeats: true, ..of(Function::Concat, "concat", &[T, T], Kind::Text) },
    of(Function::Length, "length", &[T], Kind::Number),
    of(Function::Lower, "lower", &[T], Kind::Text),
    of(Function::Upper, "upper", &[T], Kind::Text),
    Signature { optional: 1, ..of(Function::Substring, "substring", &[T, N, N], Kind::Text) },
    of(Function::IndexOf, "index_of", &[T, T], Kind::Number),
    of(Function::StartsWith, "starts_with", &[T, T], Kind::Bool),
    of(Function::EndsWith, "ends_with", &[T, T], Kind::Bool),
    of(Function::Contains, "contains", &[T, T], Kind::Bool),
];
