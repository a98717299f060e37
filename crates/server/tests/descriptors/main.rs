//! A broker that may open few files: connections are refused, and the store goes on.

#[path = "../support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use overtake_server::config::{Config, Listen, Listener};
use overtake_server::serve;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;

use crate::support::{GUEST, exchange};

/// Files that the broker may have open.
const FILES: usize = 200;
/// Where the data of the broker is, for the process that is one.
const DIRECTORY: &str = "DESCRIPTORS_TEST_DIRECTORY";

/// The broker, which is this very program in another process; it is killed when this is dropped.
struct Broker {
    child: Child,
    http: SocketAddr,
    amqp: SocketAddr,
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.child.kill().expect("it runs until then");
        self.child.wait().expect("it ends");
    }
}

impl Broker {
    fn start(dir: &TempDir, files: usize) -> Self {
        let this = std::env::current_exe().expect("a running program has a path");
        let mut command = Command::new("sh");
        command
            .args(["-c", &format!("ulimit -n {files}; exec \"$0\" --exact the_broker --nocapture")])
            .arg(this);
        command.env(DIRECTORY, dir.path()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("there is a shell");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let line =
            lines.map_while(Result::ok).find_map(|line| Some(line.split_once("serving ")?.1.to_owned()));
        let line = line.expect("it starts");
        let (http, amqp) = line.split_once(' ').expect("two addresses");
        let address = |text: &str| text.parse().expect("an address");
        Self { child, http: address(http), amqp: address(amqp) }
    }
}

/// Runs the broker, where the test below has started this process for it.
#[test]
#[allow(clippy::print_stdout, reason = "the test that started it reads it")]
fn the_broker() {
    let Some(dir) = std::env::var_os(DIRECTORY) else { return };
    let mut config = Config::default();
    config.store.data_dir.value = dir.into();
    config.store.segment_bytes.value.0 = 4 << 20;
    let free = Listen(SocketAddr::from(([127, 0, 0, 1], 0)));
    config.http.listen.value = free;
    config.amqp.listen.value = Listener(Some(free));
    let ended = serve(&config, &|ready| {
        let amqp = ready.addresses.amqp.expect("it is served");
        println!("serving {} {amqp}", ready.addresses.http);
    });
    panic!("it ended: {ended:?}");
}

/// The status of the answer.
fn ask(stream: &mut TcpStream, request: &str, body: &str) -> String {
    let length = body.len();
    let request = format!(
        "{request} HTTP/1.1\r\nHost: localhost\r\n{GUEST}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let (head, _) = exchange(stream, &request);
    head["HTTP/1.1 ".len()..][..3].to_owned()
}

/// Everything that a client opens here is a file of this process.
fn have_many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("up to the hard limit");
}

#[test]
fn a_thousand_idle_connections_cost_nobody_a_publish() {
    have_many_files();
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start(&dir, 1_024);
    let mut first = TcpStream::connect(broker.http).expect("the system accepts");
    assert_eq!(ask(&mut first, "PUT /v1/queues/q", "{}"), "201");
    let idle: Vec<TcpStream> =
        (0..1_000).map(|_| TcpStream::connect(broker.http).expect("the system accepts")).collect();
    for _ in 0..10 {
        assert_eq!(ask(&mut first, "POST /v1/queues/q/messages", r#"{"body":"x"}"#), "201");
    }
    drop(idle);
}

#[test]
fn idle_connections_take_no_descriptor_that_the_store_needs() {
    let dir = TempDir::new().expect("a directory");
    let broker = Broker::start(&dir, FILES);
    let connect = |address| TcpStream::connect(address).expect("the system accepts");
    let mut first = connect(broker.http);
    assert_eq!(ask(&mut first, "PUT /v1/queues/q", "{}"), "201");
    // More than there are descriptors, of clients that say nothing.
    let idle: Vec<TcpStream> = (0..2 * FILES)
        .map(|number| connect(if number % 2 == 0 { broker.http } else { broker.amqp }))
        .collect();
    assert_eq!(ask(&mut connect(broker.http), "GET /livez", ""), "200", "a probe is answered");
    assert_eq!(ask(&mut connect(broker.http), "GET /v1/queues/q", ""), "503", "nothing else is");
    // Who was there before publishes, and the store needs more than one new file for it.
    let message = format!("{{\"body\":\"{}\"}}", "x".repeat(256 << 10));
    for _ in 0..40 {
        assert_eq!(ask(&mut first, "POST /v1/queues/q/messages", &message), "201");
    }
    drop(idle);
    // As soon as the broker has seen that they are gone.
    while ask(&mut connect(broker.http), "GET /v1/queues/q", "") != "200" {}
}
