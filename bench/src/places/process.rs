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
use crate::amqp::peer::process::{Process, free_port, overtake};
use crate::report::Line;
use crate::shards::{Durability, Shards};

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

/// A lease of one message, as `guest` with the password that it has on loopback.
fn request(address: SocketAddr) -> String {
    let body = r#"{"max":1}"#;
    format!(
        "POST /v1/queues/{QUEUE}/leases HTTP/1.1\r\nHost: {address}\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
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

fn ask(mut stream: TcpStream, address: SocketAddr) -> Result<String> {
    stream.write_all(request(address).as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// From the start of a process until it listened, and until it had answered.
struct Start {
    listens: Duration,
    leased: Duration,
}

fn start(program: &Path, nodes: &str, dir: &TempDir) -> Result<Start> {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()?));
    let (http, data) = (address.to_string(), dir.path().join("data").display().to_string());
    let place = ["--http", &http, "--amqp", "127.0.0.1:0", "--data-dir", &data];
    // There is no replica.
    let servers = ["--engine", "cluster", "--engine-nodes", nodes, "--engine-replicas-acked", "0"];
    let args = [&["serve"][..], &servers, &place].concat();
    let begun = Instant::now();
    let process = Process::start(program, &args, &[], dir.path().join("log"))?;
    let mut listens = Duration::ZERO;
    let answered = reach(address, begun).and_then(|stream| {
        listens = begun.elapsed();
        ask(stream, address)
    });
    let leased = begun.elapsed();
    let answer = answered.with_context(|| process.said())?;
    if !(answer.starts_with("HTTP/1.1 200") && answer.contains("\"lease")) {
        bail!("it leased nothing: {answer}");
    }
    process.end()?;
    Ok(Start { listens, leased })
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
    // The first one makes the user.
    start(&program, &nodes, &dir)?;
    let count = if plan.quick { 3 } else { STARTS };
    let starts = (0..count).map(|_| start(&program, &nodes, &dir)).collect::<Result<Vec<_>>>()?;
    let sorted = |of: fn(&Start) -> Duration| {
        let mut all: Vec<_> = starts.iter().map(of).collect();
        all.sort_unstable();
        all
    };
    let (listens, leased) = (sorted(|start| start.listens), sorted(|start| start.leased));
    let ms = |took: Duration| took.as_secs_f64() * 1e3;
    let within = leased.iter().filter(|took| **took <= WANTED).count();
    let lines = [
        ("a process that is started, until it listens: median", "ms", ms(listens[count / 2])),
        ("a process that is started, until its first lease is answered: median", "ms", ms(leased[count / 2])),
        (
            "a process that is started, until its first lease is answered: the longest",
            "ms",
            ms(leased[count - 1]),
        ),
        ("processes that had answered within 100 ms", "%", within as f64 / count as f64 * 100.0),
    ];
    Ok(lines.into_iter().map(|(what, unit, value)| super::line(what, unit, value)).collect())
}
