//! Publishing every line of a file: a thread reads, batches go out, a bar shows how far it is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::error::Category;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Ended, Session};
use crate::body;
use crate::client::Client;
use crate::failure::{Exit, Failure};
use crate::table::{count, number};
use crate::words;

/// Bytes of a read. What a pipe has at once fits, so that a batch never waits for more than is there.
const READ_BYTES: usize = 1 << 20;
/// A batch is full with so many bytes of lines, however few they are.
const BATCH_BYTES_MAX: u64 = 4 << 20;

/// What to publish, and how.
pub(crate) struct Plan {
    /// The file; `-` is stdin.
    pub(crate) file: PathBuf,
    /// The path to post to.
    pub(crate) to: String,
    /// What every message says.
    pub(crate) common: Map<String, Value>,
    /// Each line is a message in JSON.
    pub(crate) are_json: bool,
    /// Most messages of a request.
    pub(crate) batch: usize,
    /// Most requests under way.
    pub(crate) in_flight: usize,
}

/// Lines that go out together.
struct Batch {
    /// The line of the first message, from 1.
    first_line: u64,
    /// Bytes of the file it covers.
    bytes: u64,
    messages: Vec<Value>,
}

/// What became of a batch, or of all.
#[derive(Default)]
struct Sent {
    published: u64,
    duplicates: u64,
    /// Bytes of the file it covers.
    bytes: u64,
    failure: Option<Failure>,
}

/// Publishes every line; the first one that is refused ends it.
pub(crate) async fn publish(plan: Plan, session: &Session) -> Ended {
    let started = Instant::now();
    let (reader, bytes) = open(&plan.file)?;
    let bar = bar(bytes, session);
    let (send, batches) = mpsc::channel(plan.in_flight);
    let sender = Sender { client: session.client.clone(), to: plan.to.clone(), in_flight: plan.in_flight };
    // Not a task: reading stdin may never end, and the process must not wait for it.
    std::thread::spawn(move || read(reader, &plan, &send));

    let total = sender.send_all(batches, &bar).await;
    bar.finish_and_clear();
    if let Some(failure) = total.failure {
        return Err(failure.during(&format!("{} published, then", count(total.published, "message"))));
    }
    report(&total, started.elapsed(), session)?;
    Ok(Exit::Done)
}

/// Sends batches, so many at a time.
struct Sender {
    client: Client,
    to: String,
    in_flight: usize,
}

impl Sender {
    /// Sends until there are no more or one fails; what is under way then is still waited for.
    async fn send_all(&self, mut batches: mpsc::Receiver<Result<Batch, Failure>>, bar: &ProgressBar) -> Sent {
        let mut total = Sent::default();
        let mut under_way = JoinSet::new();
        let mut more = true;
        while more || !under_way.is_empty() {
            tokio::select! {
                Some(ended) = under_way.join_next() => {
                    // A task ends badly only by a panic, which goes on here.
                    total.add(ended.expect("it does not panic"));
                    bar.set_position(total.bytes);
                    bar.set_message(number(total.published));
                }
                batch = batches.recv(), if more && under_way.len() < self.in_flight => match batch {
                    Some(Ok(batch)) => {
                        under_way.spawn(publish_batch(self.client.clone(), self.to.clone(), batch));
                    }
                    Some(Err(failure)) => total.add(Sent { failure: Some(failure), ..Sent::default() }),
                    None => more = false,
                },
            }
            more &= total.failure.is_none();
        }
        total
    }
}

impl Sent {
    /// Both; the first failure counts.
    fn add(&mut self, other: Self) {
        self.published += other.published;
        self.duplicates += other.duplicates;
        self.bytes += other.bytes;
        self.failure = self.failure.take().or(other.failure);
    }
}

/// Publishes a batch. One that is refused is halved until what is before the line at fault is published and the line is
/// known: a batch is published as a whole or not at all, and its bounds mean nothing to who wrote the lines.
async fn publish_batch(client: Client, to: String, batch: Batch) -> Sent {
    let mut sent = Sent { bytes: batch.bytes, ..Sent::default() };
    let mut parts = vec![(batch.first_line, batch.messages)];
    while let Some((first_line, messages)) = parts.pop() {
        let count = messages.len() as u64;
        // Not `json!`, which would copy them all.
        let mut request = Value::Object(Map::from_iter([("messages".to_owned(), Value::Array(messages))]));
        match client.post(&to, &request).await {
            Ok(answer) => {
                let copies = answer["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
                let duplicates = copies.iter().filter(|copy| copy["duplicate"] == true).count() as u64;
                sent.published += count - duplicates;
                sent.duplicates += duplicates;
            }
            Err(failure) if failure.is_declined() && count > 1 => {
                let Value::Array(mut messages) = request["messages"].take() else { break };
                let second = messages.split_off(messages.len() / 2);
                parts.push((first_line + messages.len() as u64, second));
                parts.push((first_line, messages));
            }
            Err(failure) => {
                let lines = if count == 1 {
                    format!("line {first_line}")
                } else {
                    format!("lines {first_line}–{}", first_line + count - 1)
                };
                sent.failure = Some(failure.during(&lines));
                break;
            }
        }
    }
    sent
}

fn open(file: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>), Failure> {
    if file == Path::new("-") {
        return Ok((Box::new(io::stdin()), None));
    }
    let cannot = |error| Failure::new(Exit::Error, format!("cannot read {}: {error}", file.display()));
    let open = File::open(file).map_err(cannot)?;
    let about = open.metadata().map_err(cannot)?;
    Ok((Box::new(open), about.is_file().then_some(about.len())))
}

/// Reads to the end, or until nobody wants more.
fn read(file: Box<dyn Read + Send>, plan: &Plan, send: &mpsc::Sender<Result<Batch, Failure>>) {
    let mut file = BufReader::with_capacity(READ_BYTES, file);
    let mut next_line = 1;
    loop {
        let (batch, failure) = fill(&mut file, plan, next_line);
        let lines = batch.messages.len() as u64;
        next_line += lines;
        let is_last = lines == 0 || failure.is_some();
        let filled = (lines > 0).then_some(Ok(batch));
        for news in filled.into_iter().chain(failure.map(Err)) {
            if send.blocking_send(news).is_err() {
                return;
            }
        }
        if is_last {
            return;
        }
    }
}

/// The next batch: until it is full, or until reading on could mean waiting; and what is wrong with the line after it.
fn fill(
    file: &mut BufReader<Box<dyn Read + Send>>,
    plan: &Plan,
    first_line: u64,
) -> (Batch, Option<Failure>) {
    let mut batch = Batch { first_line, bytes: 0, messages: Vec::new() };
    let mut line = Vec::new();
    while batch.messages.len() < plan.batch && batch.bytes < BATCH_BYTES_MAX {
        line.clear();
        match file.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(bytes) => batch.bytes += bytes as u64,
            Err(error) => return (batch, Some(error.into())),
        }
        match message(line.strip_suffix(b"\n").unwrap_or(&line), plan) {
            Ok(message) => batch.messages.push(message),
            Err(why) => {
                let at = first_line + batch.messages.len() as u64;
                return (batch, Some(Failure::new(Exit::Error, format!("line {at}: {why}"))));
            }
        }
        if file.buffer().is_empty() {
            break;
        }
    }
    (batch, None)
}

fn message(line: &[u8], plan: &Plan) -> Result<Value, String> {
    let mut message = plan.common.clone();
    if plan.are_json {
        let said: Map<String, Value> = words::json(line).map_err(|error| match error.classify() {
            Category::Data if error.to_string().starts_with("duplicate field") => error.to_string(),
            Category::Data => "a message is a JSON object, such as {\"body\": \"hello\"}".to_owned(),
            Category::Eof => "the JSON ends too early".to_owned(),
            Category::Syntax | Category::Io => {
                format!("this is not JSON from column {} on", error.column())
            }
        })?;
        message.extend(said);
    } else {
        body::put(&mut message, line);
    }
    Ok(Value::Object(message))
}

fn bar(bytes: Option<u64>, session: &Session) -> ProgressBar {
    if session.out.is_quiet() || session.out.is_json() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(bytes, ProgressDrawTarget::stderr());
    let template = match bytes {
        Some(_) => "{bar:30} {percent:>3} %  {msg} published  {bytes_per_sec}  {eta} left",
        None => "{spinner} {msg} published  {bytes_per_sec}",
    };
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message("0");
    bar
}

fn report(done: &Sent, took: Duration, session: &Session) -> Result<(), Failure> {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let answer = json!({ "published": done.published, "duplicates": done.duplicates, "ms": ms });
    session.out.done(&answer, || {
        let again = match done.duplicates {
            0 => String::new(),
            many => format!(", {} there already", count(many, "message")),
        };
        let rate = (done.published * 1_000).checked_div(ms).unwrap_or(done.published);
        format!("{} published{again}, {} a second", count(done.published, "message"), number(rate))
    })?;
    Ok(())
}
