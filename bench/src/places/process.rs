//! How soon a broker's process that is started on servers with a queue in a thousand places has answered a lease over HTTP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use overtake_engine::Engine as _;
use tempfile::TempDir;

use super::{BATCH, PLACES, QUEUE, in_places, level_of, message};
use crate::Plan;
use crate::amqp::peer::process::{Process, overtake};
use crate::report::Line;
use crate::shards::{Durability, Shards};
use overtake_free_port::free_port;

/// Messages in the places.
const MESSAGES: u32 = 10_000;
/// Processes that are started, one after the other.
const STARTS: usize = 20;
/// By then it is to have answered.
const WANTED: Duration = Duration::from_millis(100);
/// Between two tries to reach it.
const RETRY: Duration = Duration::from_millis(1);
/// A process that cannot be reached by then does not begin.
const BEGIN_MAX: Duration = Duration::from_secs(30);

/// How whoever asks logs in: `guest` with the password that it has on loopback.
const PASSWORD: &str = "Basic Z3Vlc3Q6Z3Vlc3Q=";

/// What is asked for.
struct Ask<'a> {
    path: &'a str,
    body: &'a str,
    login: &'a str,
}

impl Ask<'_> {
    fn text(&self, address: SocketAddr) -> String {
        let Self { path, body, login } = self;
        format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: {login}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }

    fn answered(&self, mut stream: TcpStream, address: SocketAddr) -> Result<String> {
        stream.write_all(self.text(address).as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.split_once("\r\n\r\n") {
            Some((head, body)) if head.starts_with("HTTP/1.1 2") => Ok(body.to_owned()),
            _ => bail!("{}: {answer}", self.path),
        }
    }
}

fn reach(address: SocketAddr, begun: Instant) -> Result<TcpStream> {
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return Ok(stream),
            Err(why) if begun.elapsed() > BEGIN_MAX => {
                return Err(why).context("the broker does not listen");
            }
            Err(_) => sleep(RETRY),
        }
    }
}

/// From the start of a process until it listened, and until it had answered, and what.
struct Start {
    listens: Duration,
    answered: Duration,
    answer: String,
}

/// Starts a process, asks it as soon as it listens, and ends it.
fn start(program: &Path, nodes: &str, dir: &TempDir, ask: &Ask<'_>) -> Result<Start> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let (http, data) = (address.to_string(), dir.path().join("data").display().to_string());
    let place = ["--http", &http, "--amqp", "127.0.0.1:0", "--data-dir", &data];
    // There is no replica.
    let servers = ["--engine", "cluster", "--engine-nodes", nodes, "--engine-replicas-acked", "0"];
    let args = [&["serve"][..], &servers, &place].concat();
    let begun = Instant::now();
    let process = Process::start(program, &args, &[], dir.path().join("log"))?;
    let mut listens = Duration::ZERO;
    let answer = reach(address, begun).and_then(|stream| {
        listens = begun.elapsed();
        ask.answered(stream, address)
    });
    let answered = begun.elapsed();
    let answer = answer.with_context(|| process.said())?;
    process.end()?;
    Ok(Start { listens, answered, answer })
}

/// Processes that are started one after the other, until the first lease of each is answered.
fn leased(program: &Path, nodes: &str, dir: &TempDir, login: &str, count: usize) -> Result<Vec<Start>> {
    let path = format!("/v1/queues/{QUEUE}/leases");
    let ask = Ask { path: &path, body: r#"{"max":1}"#, login };
    let all = (0..count).map(|_| {
        let start = start(program, nodes, dir, &ask)?;
        if !start.answer.contains("\"receipt\"") {
            bail!("it leased nothing: {}", start.answer);
        }
        Ok(start)
    });
    all.collect()
}

pub(super) async fn lines(plan: Plan) -> Result<Vec<Line>> {
    let program = overtake()?;
    let shards = Shards::start(1, Durability::EverySecond).await?;
    let broker = shards.engine().await?;
    broker.declare_queue(QUEUE, in_places(PLACES)).await?;
    for first in (0..MESSAGES).step_by(BATCH as usize) {
        let batch = (first..first + BATCH).map(|number| message(QUEUE.into(), number, level_of(number)));
        broker.publish(batch.collect()).await?;
    }
    broker.close().await;
    let (nodes, dir) = (shards.nodes().join(","), tempfile::tempdir()?);
    // The first one makes the user, too.
    let ask = Ask { path: "/v1/tokens", body: "{}", login: PASSWORD };
    let made: serde_json::Value = serde_json::from_str(&start(&program, &nodes, &dir, &ask)?.answer)?;
    let token = format!("Bearer {}", made["secret"].as_str().context("a token is made")?);
    let count = if plan.quick { 3 } else { STARTS };
    let by_token = leased(&program, &nodes, &dir, &token, count)?;
    let by_password = leased(&program, &nodes, &dir, PASSWORD, count)?;
    let sorted = |all: &[Start], of: fn(&Start) -> Duration| {
        let mut all: Vec<_> = all.iter().map(of).collect();
        all.sort_unstable();
        all
    };
    let ms = |took: Duration| took.as_secs_f64() * 1e3;
    let listens = sorted(&by_token, |start| start.listens)[count / 2];
    let mut lines =
        vec![super::line("a process that is started, until it listens: median", "ms", ms(listens))];
    let kinds = [
        (
            by_token,
            "until its first lease is answered, by a token: median",
            "by a token: the longest",
            "by a token: within 100 ms",
        ),
        (
            by_password,
            "until its first lease is answered, by a password: median",
            "by a password: the longest",
            "by a password: within 100 ms",
        ),
    ];
    for (starts, median, longest, within) in kinds {
        let answered = sorted(&starts, |start| start.answered);
        let soon = answered.iter().filter(|took| **took <= WANTED).count();
        lines.push(super::line(median, "ms", ms(answered[count / 2])));
        lines.push(super::line(longest, "ms", ms(answered[count - 1])));
        lines.push(super::line(within, "%", soon as f64 / count as f64 * 100.0));
    }
    Ok(lines)
}
