//! Where a copy goes: `INTO sink`.

use std::fmt;

/// Longest name of a queue or an endpoint, and longest path of an input, bytes.
pub const SINK_NAME_LEN_MAX: usize = 255;

/// Where a copy of a message goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Sink {
    /// `$upstream`: whatever lies above this broker.
    Upstream,
    /// `BrokeredEndpoint("/modules/M/inputs/I")`: the input of a module, by its path.
    Brokered(Box<str>),
    /// `Queue("name")`: a queue of this broker.
    Queue(Box<str>),
    /// `Endpoint("name")`: an endpoint that is set up elsewhere, by its name.
    Endpoint(Box<str>),
}

/// A sink that is written with brackets.
pub(crate) type Make = fn(Box<str>) -> Sink;

/// Those there are, as they are written.
pub(crate) const WITH_BRACKETS: [(&str, Make); 3] =
    [("BrokeredEndpoint", Sink::Brokered), ("Queue", Sink::Queue), ("Endpoint", Sink::Endpoint)];

impl Sink {
    /// What it is called: the name of a queue or an endpoint, the path of an input, `$upstream`.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Upstream => "$upstream",
            Self::Brokered(name) | Self::Queue(name) | Self::Endpoint(name) => name,
        }
    }

    /// What is wrong with its name, and what to do.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str)> {
        let name = self.name();
        if name.is_empty() || name.len() > SINK_NAME_LEN_MAX || name.chars().any(char::is_control) {
            let hint = "give 1 to 255 bytes of text without control characters";
            return Some(("the name of a sink is empty, too long or has control characters", hint));
        }
        match self {
            Self::Brokered(path) if !is_input(path) => {
                Some(("this is no input of a module", "write `/modules/NAME/inputs/NAME`"))
            }
            _ => None,
        }
    }
}

/// `/modules/M/inputs/I`
fn is_input(path: &str) -> bool {
    let parts = path.split('/').collect::<Vec<_>>();
    let ["", modules, module, inputs, input] = parts[..] else { return false };
    modules.eq_ignore_ascii_case("modules")
        && inputs.eq_ignore_ascii_case("inputs")
        && !module.is_empty()
        && !input.is_empty()
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self {
            Self::Upstream => return f.write_str("$upstream"),
            Self::Brokered(_) => "BrokeredEndpoint",
            Self::Queue(_) => "Queue",
            Self::Endpoint(_) => "Endpoint",
        };
        write!(f, "{kind}({})", crate::show::text(self.name(), '"'))
    }
}
