//! A network of one broker's own: a namespace with its own loopback, where its clients are, too, and one cable to the servers, which can be cut.
//!
//! ```text
//!   the broker's namespace                            the one that all others are in
//!   clients ── loopback ── broker ── near ══ cable ══ far ── servers
//! ```
//!
//! What is cut is the cable's two ends: each sends to an Ethernet address that nobody has. Frames arrive and are thrown away, in both directions, and nobody is told: no link goes
//! down, no route goes away, nothing is refused. With a link that is down, the broker's own system would tell it so, and the servers' would send their answers out by the way to everywhere else.
//!
//! Whoever holds the namespace takes the cable away when the test ends, however that ends; nothing has a name that another run could have.

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::support::namespace::{Namespace, Way};

/// It takes a privilege: a cable ends in a namespace that is not ours alone.
const WAYS: [Way; 1] = [Way { unshare: &["--net"], enter: &["--net"] }];
/// The near end, as it is called in the broker's namespace.
const NEAR: &str = "near";
/// Connections that hear nothing keep a namespace for minutes after its last process, and it would keep the cable.
const HOLD: &str = "trap 'ip link delete near 2>/dev/null' EXIT; ip link set lo up";
/// An Ethernet address that nobody has: one of those that everybody may give (IEEE 802).
const NOBODY: &str = "02:00:00:00:00:01";
/// The ranges of which everybody may take addresses (RFC 1918), and which bits of them are ours to choose.
const PRIVATE: [(Ipv4Addr, u32); 3] = [
    (Ipv4Addr::new(10, 0, 0, 0), 0x00ff_ffff),
    (Ipv4Addr::new(172, 16, 0, 0), 0x000f_ffff),
    (Ipv4Addr::new(192, 168, 0, 0), 0x0000_ffff),
];
/// How often addresses are drawn that somebody has.
const DRAWS: usize = 12;
/// Where nobody listens (RFC 863).
const DISCARD: u16 = 9;
/// For how long an answer is waited for that comes at once, if it comes.
const KNOCK: Duration = Duration::from_millis(500);

/// There until it is dropped.
pub(crate) struct Network {
    namespace: Namespace,
    /// The same, for threads that enter it.
    inside: File,
    /// The far end, as it is called where all others are.
    far_link: String,
    near: Ipv4Addr,
    far: Ipv4Addr,
}

impl Network {
    /// A cable that nothing is on yet.
    ///
    /// # Errors
    /// Why this machine does not let us.
    pub(crate) fn make() -> Result<Self, String> {
        let namespace = Namespace::make(&WAYS, HOLD, &[])?;
        let inside = File::open(format!("/proc/{}/ns/net", namespace.holder()));
        let inside = inside.map_err(|error| format!("cannot open a namespace: {error}"))?;
        let (near, far) = draw()?;
        let far_link = format!("far{:08x}", chance() >> 32);
        let network = Self { namespace, inside, far_link, near, far };
        network.lay()?;
        Ok(network)
    }

    fn lay(&self) -> Result<(), String> {
        let holder = self.namespace.holder().to_string();
        let far: &str = &self.far_link;
        ip(&["link", "add", far, "type", "veth", "peer", "name", NEAR, "netns", &holder])?;
        ip(&["address", "add", &format!("{}/30", self.far), "dev", far])?;
        ip(&["link", "set", far, "up"])?;
        self.ip_inside(&["address", "add", &format!("{}/30", self.near), "dev", NEAR])?;
        self.ip_inside(&["link", "set", NEAR, "up"])
    }

    /// Where the servers are for the broker, and have to listen for it.
    pub(crate) fn far(&self) -> Ipv4Addr {
        self.far
    }

    /// `overtake` in it.
    pub(crate) fn overtake(&self) -> Command {
        self.namespace.overtake()
    }

    /// Does something in it: sockets that are opened stay there.
    pub(crate) fn within<T: Send>(&self, what: impl FnOnce() -> T + Send) -> T {
        // On a thread of its own, so that nobody has to find the way back.
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let entered =
                    move_into_link_name_space(self.inside.as_fd(), Some(LinkNameSpaceType::Network));
                entered.expect("who made it may enter");
                what()
            });
            inside.join().expect("it does not panic")
        })
    }

    /// From now on nothing passes.
    pub(crate) fn cut(&self) {
        let (near, far) = (self.near.to_string(), self.far.to_string());
        let lies = ["lladdr", NOBODY, "nud", "permanent"];
        let cut = self.ip_inside(&[&["neigh", "replace", &far, "dev", NEAR], &lies[..]].concat());
        cut.expect("who laid it may cut it");
        let cut = ip(&[&["neigh", "replace", &near, "dev", &self.far_link], &lies[..]].concat());
        cut.expect("who laid it may cut it");
    }

    /// It does again.
    pub(crate) fn mend(&self) {
        let (near, far) = (self.near.to_string(), self.far.to_string());
        self.ip_inside(&["neigh", "del", &far, "dev", NEAR]).expect("who cut it may mend it");
        ip(&["neigh", "del", &near, "dev", &self.far_link]).expect("who cut it may mend it");
        // Who is asked for his address may take a moment.
        while !self.is_whole() {}
    }

    /// Whether the broker's end is heard where the servers are: a port where nobody listens is refused then, and else there is silence.
    pub(crate) fn is_whole(&self) -> bool {
        let knocked = TcpStream::connect_timeout(&(self.near, DISCARD).into(), KNOCK);
        match knocked.expect_err("nobody listens there").kind() {
            ErrorKind::ConnectionRefused => true,
            ErrorKind::TimedOut => false,
            other => panic!("a cable that is cut says nothing: {other}"),
        }
    }

    fn ip_inside(&self, words: &[&str]) -> Result<(), String> {
        run(self.namespace.command("ip").args(words)).map(drop)
    }
}

/// A near and a far address of which nothing is known here yet.
fn draw() -> Result<(Ipv4Addr, Ipv4Addr), String> {
    for (range, own) in PRIVATE.into_iter().cycle().take(DRAWS) {
        let bits = u32::try_from(chance() >> 32).expect("half of it");
        let net = Ipv4Addr::from_bits(range.to_bits() | (bits & own & !3));
        if is_free(net)? {
            return Ok((Ipv4Addr::from_bits(net.to_bits() + 2), Ipv4Addr::from_bits(net.to_bits() + 1)));
        }
    }
    Err("all private addresses are somebody's here".to_owned())
}

/// Whether no route is to any of four addresses, but the one to everywhere else.
fn is_free(net: Ipv4Addr) -> Result<bool, String> {
    let net = format!("{net}/30");
    let routes = |which: &str| run(Command::new("ip").args(["-4", "route", "show", which, &net]));
    let (around, inside) = (routes("match")?, routes("root")?);
    Ok(inside.is_empty() && around.lines().all(|route| route.starts_with("default")))
}

/// A number that another run does not draw.
fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

fn ip<W: AsRef<OsStr>>(words: &[W]) -> Result<(), String> {
    run(Command::new("ip").args(words)).map(drop)
}

/// What it says on stdout.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("cannot run ip: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command:?}: {}", why.trim().replace('\n', ", ")))
}
