//! Our broker under Callgrind (valgrind.org), which counts instructions by function.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{Broker, overtake};

/// A part of our broker, or a library that it stands upon, whose instructions are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// All but logins.
    All,
    Connections,
    Engine,
    Lane,
    Store,
    /// The HTTP API, the libraries that it stands upon, and permissions.
    Http,
    Tokio,
    /// Allocating, and copying.
    Memory,
    /// Everything else: the standard library, the system's.
    Rest,
    /// Checking passwords, which is slow on purpose and not counted.
    Login,
}

/// The groups of the table: all but the last.
pub(crate) const GROUPS: [Group; 9] = [
    Group::All,
    Group::Connections,
    Group::Engine,
    Group::Lane,
    Group::Store,
    Group::Http,
    Group::Tokio,
    Group::Memory,
    Group::Rest,
];

impl Group {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Connections => "connections, codec",
            Self::Engine => "engine",
            Self::Lane => "lanes",
            Self::Store => "store",
            Self::Http => "HTTP",
            Self::Tokio => "tokio",
            Self::Memory => "memory",
            Self::Rest => "rest",
            Self::Login => "login",
        }
    }

    /// By the name of a function. A function of a library that was made for a type of ours counts as ours.
    fn of(function: &str) -> Self {
        const OURS: &str = "overtake_";
        let start = function.find(OURS).map_or(0, |at| at + OURS.len());
        let word = function[start..].trim_start_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let word = word.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        match word {
            "amqp" | "amqp_session" | "connections" | "properties" if start > 0 => Self::Connections,
            "engine" | "routes" if start > 0 => Self::Engine,
            "lane" if start > 0 => Self::Lane,
            "store" if start > 0 => Self::Store,
            "http" | "api" | "access" if start > 0 => Self::Http,
            _ if start > 0 => Self::Rest,
            "argon2" | "blake2" => Self::Login,
            "axum" | "axum_core" | "http" | "http_body" | "http_body_util" | "httparse" | "hyper"
            | "hyper_util" | "matchit" | "serde" | "serde_core" | "serde_json" | "tower" | "tower_http" => {
                Self::Http
            }
            "tokio" | "tokio_util" | "mio" => Self::Tokio,
            word if word.trim_start_matches('_').starts_with("mi_") || word.starts_with("__mem") => {
                Self::Memory
            }
            _ => Self::Rest,
        }
    }
}

/// Instructions by group.
#[derive(Debug, Default)]
pub(crate) struct Spent([u64; GROUPS.len() + 1]);

impl Spent {
    pub(crate) fn of(&self, group: Group) -> u64 {
        self.0[group as usize]
    }

    fn add(&mut self, function: &str, instructions: u64) {
        let group = Group::of(function);
        self.0[group as usize] += instructions;
        if group != Group::Login {
            self.0[Group::All as usize] += instructions;
        }
    }

    /// From a profile in the Callgrind format, version 1 (valgrind.org/docs/manual/cl-format.html): functions follow `fn=`, by a number and, the first
    /// time, a name; each line that begins with a place ends with what was spent there, but for the one after `calls=`, which is what a called function
    /// spent.
    ///
    /// # Errors
    /// A number of instructions that is none.
    fn parse(profile: &str) -> Result<Self> {
        let (mut this, mut names) = (Self::default(), HashMap::new());
        let (mut function, mut is_of_call) = ("", false);
        for line in profile.lines() {
            if let Some(name) = line.strip_prefix("fn=") {
                function = named(name, &mut names);
            } else if let Some(name) = line.strip_prefix("cfn=") {
                named(name, &mut names);
            } else if line.starts_with("calls=") {
                is_of_call = true;
            } else if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c))
                && !std::mem::take(&mut is_of_call)
            {
                // Without a number it is 0.
                let spent = line.split_whitespace().nth(1).unwrap_or("0");
                this.add(function, spent.parse().with_context(|| format!("the profile says `{line}`"))?);
            }
        }
        Ok(this)
    }
}

/// `(7) name`, and from then on `(7)`.
fn named<'a>(text: &'a str, names: &mut HashMap<&'a str, &'a str>) -> &'a str {
    let (number, name) = text.split_once(' ').unwrap_or((text, ""));
    let known = names.entry(number).or_insert(name);
    if !name.is_empty() {
        *known = name;
    }
    known
}

/// Our broker under Callgrind, about a hundred times slower.
pub(crate) struct Callgrind {
    broker: Broker,
    profile: PathBuf,
}

impl Callgrind {
    /// # Errors
    /// valgrind is not installed, or our broker is not built.
    pub(crate) fn start() -> Result<Self> {
        Command::new("valgrind")
            .arg("--version")
            .output()
            .context("not installed: apt-get install valgrind")?;
        let dir = tempfile::tempdir()?;
        let profile = dir.path().join("callgrind.out");
        let to = format!("--callgrind-out-file={}", profile.display());
        let broker = overtake::start_under(Path::new("valgrind"), &["--tool=callgrind", &to], dir)?;
        Ok(Self { broker, profile })
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Counts what the broker executes while this is done.
    pub(crate) fn count(&self, work: &dyn Fn() -> Result<()>) -> Result<Spent> {
        self.tell("zero")?;
        work()?;
        self.tell("dump")?;
        // Each has a number after its name, from 1.
        let of = |at: u32| self.profile.with_added_extension(at.to_string());
        let last =
            (1..).map(of).take_while(|path| path.exists()).last().context("Callgrind wrote nothing")?;
        Spent::parse(&String::from_utf8_lossy(&fs::read(last)?))
    }

    fn tell(&self, command: &str) -> Result<()> {
        let id = self.broker.process.as_ref().context("it is a process of ours")?.id();
        let told = Command::new("vgdb").arg(format!("--pid={id}")).arg(command).output()?;
        ensure!(told.status.success(), "vgdb {command}: {}", String::from_utf8_lossy(&told.stderr));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_function_spends_itself_counts_for_its_group() {
        let profile = "version: 1\nevents: Ir\n\nfl=(1) a.rs\nfn=(1) overtake_lane::lane::Lane::push\n10 7\n+2 3\ncfn=(2) argon2::fill\n\
                       calls=1 5\n12 500\n\nfn=(2)\n5 500\nfn=(3) <alloc::vec::Vec<overtake_store::Record> as Drop>::drop\n9 20\nfn=(4) mi_malloc\n* 4\n";
        let spent = Spent::parse(profile).expect("a profile");
        let all: Vec<_> = [Group::All, Group::Lane, Group::Store, Group::Memory, Group::Login]
            .map(|group| spent.of(group))
            .into();
        assert_eq!(all, [34, 10, 20, 4, 500]);
    }

    #[test]
    fn what_is_no_number_is_no_zero() {
        assert!(Spent::parse("fn=(1) mi_malloc\n10 many\n").is_err());
        assert_eq!(Spent::parse("fn=(1) mi_malloc\n10\n").expect("a profile").of(Group::All), 0);
    }

    #[test]
    fn functions_of_libraries_have_their_groups() {
        let names = [
            "<tokio::runtime::Runtime>::block_on",
            "_mi_page_free",
            "__memcpy_avx_unaligned",
            "hyper::proto::h1",
            "std::thread::park",
        ];
        let groups = names.map(Group::of);
        assert_eq!(groups, [Group::Tokio, Group::Memory, Group::Memory, Group::Http, Group::Rest]);
    }
}
