//! Moving what waits in a queue to another broker, each message once.
//!
//! ```text
//!   here: lease, the most urgent first ──▶ number, in the file ──▶ publish there ──▶ acknowledge here
//!   here, paused: browse what cannot be leased: what is delayed ─▶ … publish there ──▶ remove here
//! ```
//!
//! A message is here, or there, or in both for a moment and then known there by its number. Order within each lane is kept: what is leased first is
//! published first.

mod import;
mod ledger;

use std::path::PathBuf;

use hyper::Method;
use jiff::Timestamp;
use overtake_lane::Scheme;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::address::path;
use crate::client::Client;
use crate::commands::queue::text;
use crate::failure::{Exit, Failure};
use import::{Import, is_known};
use ledger::Ledger;

/// Messages that are under way at once.
const BATCH: u64 = 200;
/// How long messages are leased meanwhile, ms.
const TERM_MS: u64 = 300_000;
/// Bytes of content that are published at once, about, as JSON.
const PUBLISH_BYTES: usize = 8 << 20;
/// Messages that are removed at once.
const REMOVALS: usize = 32;
/// Messages of a page that is only looked at.
const LOOK: u64 = 1_000;
/// The statuses of messages that are moved.
const WAITING: [&str; 2] = ["ready", "delayed"];
/// By what a message is known to be the same one.
const SAME: [&str; 7] = ["seq", "published_at", "id", "key", "key_weight", "body", "body_base64"];
/// What says that this has leased them.
const WORKER: &str = "overtake move";

/// A queue of a broker.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) client: Client,
    pub(crate) queue: String,
}

impl End {
    /// In words.
    fn named(&self) -> String {
        format!("{} at {}, virtual host {}", self.queue, self.client.url(), self.client.vhost())
    }

    fn path(&self, further: &[&str]) -> String {
        path(&[&["v1", "queues", &self.queue], further].concat())
    }

    /// The queue; `None`: there is none.
    async fn look(&self) -> Result<Option<Value>, Failure> {
        match self.client.ask(Method::GET, &self.path(&[]), None).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(failure) if failure.word() == Some("no-such-queue") => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn page(&self, status: &str, limit: u64) -> Result<Vec<Value>, Failure> {
        self.first(&format!("?status={status}&order=published&limit={limit}&properties=base64")).await
    }

    /// How many of the first messages that are leased are so by a move.
    async fn leased_by_moves(&self) -> Result<u64, Failure> {
        let leased = self.page("leased", LOOK).await?;
        Ok(leased.iter().filter(|message| message["holder"]["worker"] == WORKER).count() as u64)
    }

    /// The first page with a message; empty: there is none. A page may be empty although the queue has more to look at.
    async fn first(&self, query: &str) -> Result<Vec<Value>, Failure> {
        let mut cursor = String::new();
        loop {
            let mut page = self.client.get(&(self.path(&["messages"]) + query + &cursor)).await?;
            let found = messages(&mut page);
            match page["next_cursor"].as_str() {
                Some(next) if found.is_empty() => cursor = format!("&cursor={next}"),
                _ => return Ok(found),
            }
        }
    }

    /// The first message that waits here and that `is_it` names, without its body.
    async fn find(&self, is_it: impl Fn(&Value) -> bool) -> Result<Option<Value>, Failure> {
        for status in WAITING {
            let query = format!("?status={status}&order=published&limit={LOOK}&body=none");
            let mut cursor = String::new();
            loop {
                let mut page = self.client.get(&(self.path(&["messages"]) + &query + &cursor)).await?;
                if let Some(found) = messages(&mut page).into_iter().find(&is_it) {
                    return Ok(Some(found));
                }
                let Some(next) = page["next_cursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
        }
        Ok(None)
    }

    /// Whether messages wait here that were published without a priority.
    async fn has_any_without_priority(&self) -> Result<bool, Failure> {
        for status in WAITING {
            let query = format!("?status={status}&without_priority=true&order=published&limit=1&body=none");
            if !self.first(&query).await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Pauses or resumes the queue. One that is gone needs neither.
    async fn set_paused(&self, paused: bool) -> Result<(), Failure> {
        let change = json!({ "paused": paused });
        match self.client.ask(Method::PATCH, &self.path(&[]), Some(&change)).await {
            Err(failure) if failure.word() != Some("no-such-queue") => Err(failure),
            _ => Ok(()),
        }
    }

    /// Whoever removed it before: it is gone.
    async fn remove(&self, id: &str) -> Result<(), Failure> {
        match self.client.ask(Method::DELETE, &self.path(&["messages", id]), None).await {
            Err(failure) if failure.word() != Some("no-such-message") => Err(failure),
            _ => Ok(()),
        }
    }

    async fn settle(&self, receipts: Value, how: &str) -> Result<Value, Failure> {
        let ask = json!({ "receipts": receipts, "how": how });
        self.client.post(&self.path(&["settle"]), &ask).await
    }
}

/// What became of a move.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// Messages that are there now.
    pub(crate) moved: u64,
    /// Of them those that were there before: from a run that was cut off, or by their ids.
    pub(crate) known: u64,
    /// What is still here, leased by others.
    pub(crate) leased: u64,
    /// What is still here, leased by a move that was cut off before it knew what it had leased.
    pub(crate) cut_off: u64,
    /// Dead letters, which stay here.
    pub(crate) dead: u64,
}

/// Moves all that waits here there.
///
/// # Errors
/// What either broker declines, or that one cannot be reached. Nothing is lost then, and the next run goes on.
pub(crate) async fn run(
    from: &End,
    to: &End,
    state: PathBuf,
    import_priority: Option<&Value>,
) -> Result<Moved, Failure> {
    let Some(queue) = from.look().await? else {
        let missing = Failure::new(Exit::Error, format!("there is no queue {}", from.named()));
        return Err(missing.hint("look at its name, and at the virtual host that --vhost names"));
    };
    declare(to, &queue["settings"]).await?;
    let there = to.look().await?.unwrap_or_default();
    let import = Import::between(in_force(&queue), in_force(&there), import_priority)?;
    if matches!(import, Import::Unknown) && from.has_any_without_priority().await? {
        return Err(import_unknown(from, to).and("nothing was moved"));
    }
    let is_another = differs_by_any(from, to).await.map_err(|failure| failure.and("nothing was moved"))?;
    check_priorities(from, to, in_force(&queue), in_force(&there), &import).await?;
    let is_bounded = is_bounded(in_force(&there));
    let mut ledger = Ledger::open(state, from.named(), to.named())?;
    // Before anything is leased: a file that cannot be written is no reason to keep messages from others.
    ledger.pauses(ledger.has_paused())?;
    let mut mover =
        Mover { from, to, ledger, import, is_another, is_bounded, most: usize::MAX, moved: Moved::default() };
    mover.give_back().await;
    let done = mover.all().await;
    // Also where the move failed: consumers here go on meanwhile.
    let unpaused = if mover.ledger.has_paused() {
        from.set_paused(false).await.and_then(|()| mover.ledger.pauses(false))
    } else {
        Ok(())
    };
    if let Err(failure) = done.and(unpaused) {
        if !failure.is_declined() {
            return Err(
                failure.and("what was moved is there, and the rest is here: run it again, and it goes on")
            );
        }
        let moved = mover.moved.moved;
        mover.ledger.close()?;
        return Err(failure.and(match moved {
            0 => "nothing was moved",
            _ => "what was moved before is there, and the rest is here",
        }));
    }
    let left = from.look().await?.unwrap_or_default();
    let count = |what: &str| left["totals"][what].as_u64().unwrap_or_default();
    let Mover { mut ledger, mut moved, .. } = mover;
    (moved.leased, moved.dead) = (count("leased"), count("dead"));
    if moved.leased > 0 {
        moved.cut_off = from.leased_by_moves().await?.min(moved.leased);
        moved.leased -= moved.cut_off;
    }
    if count("ready") + count("delayed") + count("leased") == 0 {
        ledger.none_is_here();
    }
    ledger.close()?;
    Ok(moved)
}

/// Where there is no such queue yet, one with the settings of the one here.
async fn declare(to: &End, settings: &Value) -> Result<(), Failure> {
    if to.look().await?.is_some() {
        return Ok(());
    }
    let mut settings = settings.clone();
    settings["paused"] = json!(false);
    let made = to.client.ask(Method::PUT, &to.path(&[]), Some(&settings)).await;
    made.map(drop).map_err(|failure| failure.during(&format!("making the queue {} there", to.queue)))
}

/// The failure of a move that has to be told which priority messages get.
fn import_unknown(from: &End, to: &End) -> Failure {
    let what = format!(
        "{} is served in publish order and has messages without a priority; {} is served by priority",
        from.named(),
        to.named()
    );
    Failure::new(Exit::Error, what)
        .declined()
        .hint("say which priority they get there: --import-priority most-urgent, or a priority")
}

/// The settings of a queue with what policies say.
fn in_force(queue: &Value) -> &Value {
    queue.get("effective_settings").unwrap_or(&queue["settings"])
}

/// Whether a queue refuses messages beyond its limits, whoever is less urgent.
fn is_bounded(settings: &Value) -> bool {
    settings["overflow"] != "evict" && settings["last_value"].is_null()
}

/// The waiting messages that a queue takes beyond those that it has, and the limit by which that is so.
fn room(queue: &Value) -> (u64, &'static str) {
    let settings = in_force(queue);
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let waiting: u64 = WAITING.iter().map(|status| number(&queue["totals"][status])).sum();
    let lanes = queue["lanes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ready_bytes: u64 = lanes.iter().map(|lane| number(&lane["ready_bytes"])).sum();
    let (max_length, max_bytes) = (number(&settings["max_length"]), number(&settings["max_bytes"]));
    match max_length {
        _ if max_bytes > 0 && ready_bytes >= max_bytes => (0, "max_bytes"),
        0 => (u64::MAX, "max_length"),
        most => (most.saturating_sub(waiting), "max_length"),
    }
}

/// Checks by any message here that the queue there is another: one that moved to itself would move for ever. False: there is no message here.
///
/// # Errors
/// A refusal where both are one queue.
async fn differs_by_any(from: &End, to: &End) -> Result<bool, Failure> {
    for status in WAITING {
        if let Some(message) = from.page(status, 1).await?.first() {
            differs(from, to, message).await?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// The id by which its sequence names a message. A broker of a version before this says the sequence as a number.
fn its_seq(message: &Value) -> String {
    format!("seq-{}", text(&message["seq"]))
}

/// Checks by one message that the queue there is another.
async fn differs(from: &End, to: &End, message: &Value) -> Result<(), Failure> {
    let same = to.client.get(&to.path(&["messages", &its_seq(message)])).await;
    match same {
        Ok(there) if SAME.iter().all(|field| there[field] == message[field]) => {
            let what = format!("{} and {} are the same queue", from.named(), to.named());
            Err(Failure::new(Exit::Error, what).declined().hint("name another with --to, --to-vhost or --as"))
        }
        Err(failure) if failure.word() != Some("no-such-message") => Err(failure),
        _ => Ok(()),
    }
}

/// Checks that the scheme there knows the priority of each message that waits here.
///
/// # Errors
/// A refusal that names the first that it does not know.
async fn check_priorities(
    from: &End,
    to: &End,
    here: &Value,
    there: &Value,
    import: &Import,
) -> Result<(), Failure> {
    if here["scheme"] == there["scheme"] {
        return Ok(());
    }
    let scheme = Scheme::deserialize(&there["scheme"]).unwrap_or_default();
    let is_unknown = |message: &Value| {
        let priority = import.priority_of(message).ok().flatten();
        priority.is_some_and(|priority| !is_known(scheme, &priority))
    };
    let Some(message) = from.find(is_unknown).await? else { return Ok(()) };
    let what = format!(
        "message {} has priority `{}`, which is no priority of the scheme {scheme} of {}",
        text(&message["id"]),
        text(&message["priority"]),
        to.named()
    );
    let hint = format!(
        "give such messages another priority with `overtake reprioritise`, or make the queue there with scheme={}; nothing was moved",
        text(&here["scheme"])
    );
    Err(Failure::new(Exit::Error, what).declined().hint(hint))
}

struct Mover<'a> {
    from: &'a End,
    to: &'a End,
    ledger: Ledger,
    import: Import,
    /// The queue there is known not to be the one here.
    is_another: bool,
    /// The queue there refuses messages beyond its limits.
    is_bounded: bool,
    /// Messages that the broker there takes at once, as far as it said.
    most: usize,
    moved: Moved,
}

impl Mover<'_> {
    /// What a run before had leased is ready again. What is over is not ours to give back.
    async fn give_back(&self) {
        let receipts = self.ledger.receipts();
        if !receipts.is_empty() {
            let _ = self.from.settle(json!(receipts), "release").await;
        }
    }

    async fn all(&mut self) -> Result<(), Failure> {
        self.leased().await?;
        let left = self.from.look().await?.unwrap_or_default();
        let waits = |status: &str| left["totals"][status].as_u64().unwrap_or_default() > 0;
        if !waits("ready") && !waits("delayed") {
            return Ok(());
        }
        // What is delayed, or held back by a limit, is taken where it stands, while nobody can lease it.
        if left["settings"]["paused"] != json!(true) {
            self.ledger.pauses(true)?;
            self.from.set_paused(true).await?;
        }
        self.browsed("ready").await?;
        self.browsed("delayed").await
    }

    /// What can be leased.
    async fn leased(&mut self) -> Result<(), Failure> {
        loop {
            let ask = json!({
                "max": self.batch().await?,
                "visibility_timeout_ms": TERM_MS,
                "worker": WORKER,
                "properties": "base64",
            });
            let mut answer = self.from.client.post(&self.from.path(&["leases"]), &ask).await?;
            let batch = messages(&mut answer);
            if batch.is_empty() {
                return Ok(());
            }
            self.hand_over(&batch).await?;
        }
    }

    /// What stands so, while nobody can lease it.
    async fn browsed(&mut self, status: &str) -> Result<(), Failure> {
        loop {
            let batch = self.from.page(status, self.batch().await?).await?;
            if batch.is_empty() {
                return Ok(());
            }
            self.hand_over(&batch).await?;
        }
    }

    /// How many messages are to be moved next: no more than the queue there has room for, so that none is leased that cannot go.
    async fn batch(&self) -> Result<u64, Failure> {
        // Messages that an earlier run published are known there, and need no room.
        if !self.is_bounded || self.ledger.has_any_in_doubt() {
            return Ok(BATCH);
        }
        let there = self.to.look().await?.unwrap_or_default();
        let (room, limit) = room(&there);
        if room > 0 {
            return Ok(room.min(BATCH));
        }
        let here = self.from.look().await?.unwrap_or_default();
        if WAITING.iter().all(|status| here["totals"][status] == 0) {
            return Ok(BATCH);
        }
        let settings = in_force(&there);
        let what = format!(
            "{} is full: its {limit} is {}, and its overflow is {}",
            self.to.named(),
            settings[limit],
            text(&settings["overflow"])
        );
        Err(Failure::new(Exit::Error, what)
            .declined()
            .hint("let its consumers catch up, raise the limit there, or name another queue with --as"))
    }

    /// Publishes them there and takes them away here, as many at once as are taken there.
    async fn hand_over(&mut self, batch: &[Value]) -> Result<(), Failure> {
        let numbers = match self.ledger.number(batch) {
            Ok(numbers) => numbers,
            Err(failure) => {
                let _ = self.from.settle(receipts(batch), "release").await;
                return Err(failure);
            }
        };
        let mut left = batch;
        while !left.is_empty() {
            let (part, rest) = left.split_at(part(left, self.most));
            let published = match self.is_another {
                true => Ok(()),
                false => differs(self.from, self.to, &part[0]).await,
            };
            self.is_another |= published.is_ok();
            let published = match published {
                Ok(()) => self.publish(part, &numbers[batch.len() - left.len()..]).await,
                same => same,
            };
            if let Err(failure) = published {
                if self.is_less_taken(part, &failure) {
                    continue;
                }
                if failure.is_declined() {
                    let _ = self.from.settle(receipts(left), "release").await;
                    self.ledger.are_not_there(left);
                }
                return Err(failure);
            }
            self.take_away(part).await?;
            left = rest;
        }
        Ok(())
    }

    /// What is leased is acknowledged: where its lease was over meanwhile, it is here again, still with its number. The others are removed.
    async fn take_away(&mut self, part: &[Value]) -> Result<(), Failure> {
        let (leased, free): (Vec<_>, Vec<_>) =
            part.iter().cloned().partition(|one| one["receipt"].is_string());
        if !leased.is_empty() {
            let settled = self.from.settle(receipts(&leased), "ack").await?;
            let results = settled["results"].as_array().map(Vec::as_slice).unwrap_or_default();
            let gone = leased.iter().zip(results).filter(|(_, result)| result["ok"] == true);
            self.are_moved(gone.map(|(one, _)| one));
        }
        for some in free.chunks(REMOVALS) {
            self.remove(some).await?;
        }
        self.are_moved(free.iter());
        Ok(())
    }

    /// Whether fewer of them may be taken there.
    fn is_less_taken(&mut self, part: &[Value], failure: &Failure) -> bool {
        let is_told = match failure.word() {
            // An older broker says the second.
            Some("too-large-at-once" | "message-too-large") => true,
            // A queue that evicts would take fewer at the cost of those before.
            Some("queue-full") => self.is_bounded,
            _ => false,
        };
        let is_too_much = is_told && part.len() > 1;
        if is_too_much {
            self.most = part.len() / 2;
        }
        is_too_much
    }

    async fn remove(&self, messages: &[Value]) -> Result<(), Failure> {
        let mut removals = JoinSet::new();
        for seq in messages.iter().map(its_seq) {
            let from = self.from.clone();
            removals.spawn(async move { from.remove(&seq).await });
        }
        removals.join_all().await.into_iter().collect()
    }

    fn are_moved<'m>(&mut self, messages: impl Iterator<Item = &'m Value>) {
        for message in messages {
            self.moved.moved += 1;
            self.ledger.is_over(message);
        }
    }

    /// Publishes them there, in order, all or none.
    async fn publish(&mut self, part: &[Value], numbers: &[Value]) -> Result<(), Failure> {
        let now = Timestamp::now();
        let mut all: Vec<_> =
            part.iter().zip(numbers).map(|(message, number)| published(message, number, now)).collect();
        for (message, published) in part.iter().zip(&mut all) {
            // The message came after the move had begun.
            let priority = self.import.priority_of(message);
            let priority = priority.map_err(|_| import_unknown(self.from, self.to))?;
            published.extend(priority.map(|priority| ("priority".to_owned(), priority)));
        }
        let ask = json!({ "messages": all });
        let answer = self.to.client.post(&self.to.path(&["messages"]), &ask).await;
        let answer =
            answer.map_err(|failure| failure.during(&format!("publishing to {}", self.to.named())))?;
        let copies = answer["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let new = copies.iter().filter(|copy| copy["duplicate"] != true).count();
        self.moved.known += part.len().saturating_sub(new) as u64;
        Ok(())
    }
}

/// How many of them are published at once.
fn part(messages: &[Value], most: usize) -> usize {
    let len = |message: &Value, field: &str| message[field].as_str().map_or(0, str::len);
    let mut bytes = 0;
    let fits = |message: &&Value| {
        let fits = bytes < PUBLISH_BYTES;
        bytes += len(message, "body") + len(message, "body_base64") + len(message, "properties_base64");
        fits
    };
    messages.iter().take(most).take_while(fits).count()
}

/// Of those that are leased.
fn receipts(messages: &[Value]) -> Value {
    messages.iter().map(|message| message["receipt"].clone()).filter(Value::is_string).collect()
}

/// The message as it is published but for its priority: what its publisher said, and what is left of its times.
fn published(message: &Value, number: &Value, now: Timestamp) -> Map<String, Value> {
    let left = |field: &str| {
        let at: Timestamp = message[field].as_str()?.parse().ok()?;
        Some(u64::try_from(at.as_millisecond() - now.as_millisecond()).unwrap_or_default().max(1))
    };
    let mut out = Map::new();
    for field in ["key", "key_weight", "body", "body_base64", "properties_base64"] {
        if !message[field].is_null() {
            out.insert(field.to_owned(), message[field].clone());
        }
    }
    let of_its_own = message["id"].as_str().filter(|id| *id != its_seq(message));
    let further = [
        ("id", of_its_own.map(Value::from)),
        ("ttl_ms", left("expires_at").map(Value::from)),
        ("delay_ms", left("due_at").map(Value::from)),
        ("producer", Some(number.clone())),
    ];
    out.extend(further.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    out
}

fn messages(answer: &mut Value) -> Vec<Value> {
    match answer["messages"].take() {
        Value::Array(messages) => messages,
        _ => Vec::new(),
    }
}
