//! The functions on the servers: loaded where they are missing or older, and never replaced by older ones.

use overtake_peer::redis::{Fault, Line};
use redis::{Value, cmd};

/// What stands before the number in the line that says a library's version.
const VERSION: &str = "-- version ";

/// A library of functions, in Lua.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// What the servers call it; letters, digits and underscores.
    pub name: &'static str,
    /// Grows with every change of the source.
    pub version: u32,
    /// Without the line `#!lua name=…`, which is made.
    pub source: &'static str,
}

/// What a server has of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// This one, perhaps since just now.
    Ours,
    /// A later version.
    Newer(u32),
    /// None, or an older one; and it is a replica, which has what its primary has.
    OnReplica,
}

impl Library {
    /// A function that only writes something: see [`super::batch`].
    pub(super) fn mark(&self) -> String {
        format!("{}_mark", self.name)
    }

    /// Whether it speaks of a function; one that it does not speak of is not there after loading it either.
    pub(super) fn names(&self, function: &str) -> bool {
        self.source.contains(function)
    }

    fn text(&self) -> String {
        let Self { name, version, source } = self;
        // Without `allow-oom` nothing could be acknowledged any more where memory is full.
        format!(
            "#!lua name={name}\n{VERSION}{version}\n{source}\n\
             redis.register_function{{function_name='{mark}', flags={{'allow-oom'}}, callback=function(keys) \
             return redis.call('SET', keys[1], '', 'EX', 60) end}}\n",
            mark = self.mark()
        )
    }

    /// Sees to it that a server has it.
    ///
    /// # Errors
    /// The connection is lost; within: why it cannot have it, as a phrase.
    pub(super) async fn ensure(&self, line: &mut Line) -> Result<Result<Found, String>, String> {
        // Twice: another process may have been quicker.
        for _ in 0..2 {
            let there = match self.there(line).await? {
                Ok(there) => there,
                Err(fault) => return Ok(Err(self.wrong(&fault))),
            };
            let mut load = cmd("FUNCTION");
            load.arg("LOAD");
            match there {
                Some((version, _)) if version > self.version => return Ok(Ok(Found::Newer(version))),
                Some((version, text)) if version == self.version => {
                    let is_same = text == self.text();
                    return Ok(if is_same { Ok(Found::Ours) } else { Err(self.differs()) });
                }
                Some(_) => {
                    load.arg("REPLACE");
                }
                None => {}
            }
            match line.ask(load.arg(self.text())).await? {
                Ok(_) => {}
                Err(fault) if fault.code() == "READONLY" => return Ok(Ok(Found::OnReplica)),
                Err(fault) if fault.details().contains("already exists") => {}
                Err(fault) => return Ok(Err(self.wrong(&fault))),
            }
        }
        Ok(Ok(Found::Ours))
    }

    /// Its version and text, if a server has any of that name.
    async fn there(&self, line: &mut Line) -> Result<Result<Option<(u32, String)>, Fault>, String> {
        let mut list = cmd("FUNCTION");
        list.arg("LIST").arg("LIBRARYNAME").arg(self.name).arg("WITHCODE");
        Ok(line.ask(&list).await?.map(|answer| code(answer).map(|text| (version(&text), text))))
    }

    fn differs(&self) -> String {
        let Self { name, version, .. } = self;
        format!(
            "it has another library {name} of the same version {version}: what is changed gets a new version"
        )
    }

    fn wrong(&self, fault: &Fault) -> String {
        let what_to_do = match (fault.code(), fault.details()) {
            ("NOPERM", _) => {
                "; the user must have the right to FUNCTION LIST and FUNCTION LOAD (ACL SETUSER)"
            }
            (_, details) if details.contains("unknown command") => {
                "; functions are there from Redis 7.0 and Valkey 7.2 on"
            }
            _ => "",
        };
        format!(
            "the functions of {} cannot be loaded: it answers {} {}{what_to_do}",
            self.name,
            fault.code(),
            fault.details()
        )
    }
}

/// The version that a server has of a library, whichever process loaded it; `None` where it has none.
pub(super) async fn version_at(line: &mut Line, name: &str) -> Result<Option<u32>, String> {
    let mut list = cmd("FUNCTION");
    list.arg("LIST").arg("LIBRARYNAME").arg(name).arg("WITHCODE");
    Ok(line.ask(&list).await?.ok().and_then(code).map(|text| version(&text)))
}

/// `[[…, "library_code", text]]`
fn code(answer: Value) -> Option<String> {
    let Value::Array(libraries) = answer else { return None };
    let Value::Array(fields) = libraries.into_iter().next()? else { return None };
    let name = Value::BulkString(b"library_code".to_vec());
    match fields.iter().position(|field| *field == name).and_then(|at| fields.get(at + 1))? {
        Value::BulkString(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}

/// One that says none is older than all.
fn version(text: &str) -> u32 {
    let line = text.lines().nth(1).and_then(|line| line.strip_prefix(VERSION));
    line.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_says_its_version_in_its_text() {
        let library = Library { name: "overtake", version: 12, source: "local x = 1" };
        assert_eq!(version(&library.text()), 12);
        assert_eq!(version("#!lua name=x\nredis.register_function('a', b)"), 0);
    }
}
