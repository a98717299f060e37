//! What could not be handled, each with how it came to that: beside its lane, and from there back into it.
//!
//! A dead letter's object is that of the entry and [`DEATH`] in it; fields other than that of the object stay as they were. What was no object is kept in fields
//! that begin with [`KEPT`], so that it comes back as the bytes it was.

use std::collections::HashMap;

use jiff::Timestamp;
use overtake_peer::redis::entries::{self, Found};
use overtake_peer::redis::{Fault, RedisServer};
use redis::{Cmd, Value, cmd};
use serde_json::{Value as Json, json};

use crate::category::{CHUNK, streams_of};
use crate::lanes::{Lane, Lanes};
use crate::layout::{DEATH, FIELD, dead_letters_of};
use crate::link::Link;
use crate::object::Object;
use crate::scripts;
use crate::subscriber::SubscribeOptions;
use crate::writer::Fields;

/// Before the name of a field that was no object.
const KEPT: &str = "original:";
/// Longest reason that is written down, characters.
const WHY_LEN_MAX: usize = 1_000;
/// So many letters are read at once.
const PAGE: usize = 100;

/// The fields of a dead letter.
pub(crate) fn letter(
    stream: &str,
    id: &str,
    of: &SubscribeOptions,
    attempts: u64,
    why: &str,
    fields: &Fields,
) -> Fields {
    let why: String = why.chars().take(WHY_LEN_MAX).collect();
    let death = json!({
        "original_stream": stream,
        "original_id": id,
        "consumer_group": of.group,
        "consumer": of.consumer,
        "failed_at": Timestamp::now().to_string(),
        "retry_count": attempts,
        "failure_reason": why,
    });
    let mut is_object = false;
    let mut all = Vec::with_capacity(fields.len() + 1);
    for (name, value) in fields {
        match Object::parse(value) {
            Ok(object) if name == FIELD.as_bytes() && !is_object => {
                is_object = true;
                all.push((name.clone(), object.with(DEATH, &death).to_text().into_bytes()));
            }
            _ => all.push((name.clone(), value.clone())),
        }
    }
    if is_object {
        return all;
    }
    for (name, _) in &mut all {
        name.splice(0..0, KEPT.bytes());
    }
    all.insert(0, (FIELD.into(), Object::default().with(DEATH, &death).to_text().into_bytes()));
    all
}

/// The fields that a letter was made of.
fn original(fields: &Fields) -> Fields {
    let kept = fields.iter().filter_map(|(name, value)| {
        let name = name.strip_prefix(KEPT.as_bytes())?;
        Some((name.to_vec(), value.clone()))
    });
    let kept: Fields = kept.collect();
    if !kept.is_empty() {
        return kept;
    }
    let one = |(name, value): &(Vec<u8>, Vec<u8>)| match Object::parse(value) {
        Ok(object) if name == FIELD.as_bytes() => {
            (name.clone(), object.without(DEATH).to_text().into_bytes())
        }
        _ => (name.clone(), value.clone()),
    };
    fields.iter().map(one).collect()
}

/// A dead letter.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadLetter {
    /// Its own id among the dead letters of its lane.
    pub id: String,
    /// The stream of dead letters that it is in.
    pub dead_letters: String,
    /// The lane whose dead letter it is.
    pub lane: Lane,
    /// The stream it came from, and to which it is replayed.
    pub stream: String,
    /// Its id there.
    pub original_id: Option<String>,
    /// The group that could not handle it.
    pub group: Option<String>,
    /// Who of that group had it last.
    pub consumer: Option<String>,
    /// When, as text; not everybody writes an RFC 3339 time.
    pub failed_at: Option<String>,
    /// How often it was tried.
    pub attempts: Option<u64>,
    /// Why.
    pub reason: Option<String>,
    /// The fields of the entry it was.
    pub fields: Fields,
}

impl DeadLetter {
    fn read(category: &str, lane: Lane, own: &str, entry: entries::Entry) -> Self {
        let death: HashMap<String, Json> = entry
            .fields
            .iter()
            .find(|(name, _)| name == FIELD.as_bytes())
            .and_then(|(_, value)| Object::parse(value).ok())
            .and_then(|object| serde_json::from_str(object.get(DEATH)?).ok())
            .unwrap_or_default();
        let text = |name: &str| death.get(name).and_then(Json::as_str).map(ToOwned::to_owned);
        // Whoever may write a dead letter may not thereby write anywhere else.
        let is_here = |stream: &String| stream == category || stream.starts_with(&format!("{category}:"));
        let stream = text("original_stream").filter(is_here).unwrap_or_else(|| own.to_owned());
        Self {
            lane,
            dead_letters: dead_letters_of(own),
            stream,
            original_id: text("original_id"),
            group: text("consumer_group"),
            consumer: text("consumer"),
            failed_at: text("failed_at"),
            attempts: death.get("retry_count").and_then(Json::as_u64),
            reason: text("failure_reason"),
            fields: original(&entry.fields),
            id: entry.id,
        }
    }

    /// The name by which it is asked for, unlike that of any other dead letter: `STREAM:dlq/ID`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.dead_letters, self.id)
    }

    /// The field with the entry's JSON object, as text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let (_, value) = self.fields.iter().find(|(name, _)| name == FIELD.as_bytes())?;
        std::str::from_utf8(value).ok()
    }
}

/// Why something was not done with the dead letters of one stream.
enum Trouble {
    /// The server says something against it, which need not concern other streams.
    Fault(String),
    /// No server answers.
    Lost(String),
}

/// The result, and where nothing could be done, and why: `STREAM:dlq: why`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept<T> {
    /// The result for all other streams.
    pub done: T,
    /// A fault for each stream with a key that is no stream, that the user has no right to, and the like.
    pub faults: Vec<String>,
}

impl<T> Swept<T> {
    /// # Errors
    /// All faults, if there are any.
    fn whole(self) -> Result<T, String> {
        if self.faults.is_empty() { Ok(self.done) } else { Err(self.faults.join("; ")) }
    }

    fn failed(&mut self, trouble: Trouble) -> Result<(), String> {
        match trouble {
            Trouble::Fault(why) => {
                self.faults.push(why);
                Ok(())
            }
            Trouble::Lost(why) => Err(why),
        }
    }
}

/// The dead letters of a category, those of its partitions included. A partition whose key leaves the set `CATEGORY:__partitions__` takes its dead letters out of sight.
pub struct DeadLetters {
    link: Link,
    category: String,
    lanes: Lanes,
}

impl DeadLetters {
    /// Connects when it is asked something.
    ///
    /// # Errors
    /// The category is no name.
    pub fn new(server: &RedisServer, category: impl Into<String>, lanes: Lanes) -> Result<Self, String> {
        let category = category.into();
        if category.trim().is_empty() {
            return Err("`category` must be a name".to_owned());
        }
        Ok(Self { link: Link::new(server.clone()), category, lanes })
    }

    /// The streams that may have dead letters, of one lane or of all: those that are known to have none are left out.
    async fn streams(&self, of: Option<Lane>) -> Result<Vec<(Lane, String)>, String> {
        let mut all = streams_of(&self.link, &self.category, &self.lanes).await?;
        all.retain(|(lane, _)| of.is_none_or(|of| of == *lane));
        let mut found = Vec::new();
        for some in all.chunks(CHUNK) {
            let dead: Vec<String> = some.iter().map(|(_, stream)| dead_letters_of(stream)).collect();
            // One key that the user may not read refuses the script for all: then each is asked by itself, later.
            let lengths = match self.link.ask(&scripts::lengths(&dead)).await? {
                Ok(Value::Array(lengths)) => lengths,
                Ok(_) | Err(_) => vec![Value::Nil; some.len()],
            };
            let with = some.iter().zip(lengths).filter(|(_, length)| *length != Value::Int(0));
            found.extend(with.map(|(each, _)| each.clone()));
        }
        Ok(found)
    }

    async fn ask(&self, stream: &str, command: &Cmd) -> Result<Value, Trouble> {
        let answer = self.link.ask(command).await.map_err(Trouble::Lost)?;
        answer.map_err(|fault: Fault| Trouble::Fault(format!("{}: {fault}", dead_letters_of(stream))))
    }

    async fn page(&self, lane: Lane, stream: &str, command: &Cmd) -> Result<Vec<DeadLetter>, Trouble> {
        let found = entries::of_entries(self.ask(stream, command).await?);
        let letters = found.into_iter().filter_map(|found| match found {
            Found::Entry(entry) => Some(DeadLetter::read(&self.category, lane, stream, entry)),
            Found::Deleted(_) => None,
        });
        Ok(letters.collect())
    }

    /// The newest of all lanes and partitions, so many at most.
    ///
    /// # Errors
    /// The server does not answer, or declines for one stream.
    pub async fn list(&self, limit: usize) -> Result<Vec<DeadLetter>, String> {
        self.sweep_list(limit).await?.whole()
    }

    /// As [`DeadLetters::list`], of the streams that can be read.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn sweep_list(&self, limit: usize) -> Result<Swept<Vec<DeadLetter>>, String> {
        let mut swept = Swept { done: Vec::new(), faults: Vec::new() };
        for (lane, stream) in self.streams(None).await? {
            match self.newest(lane, &stream, limit).await {
                Ok(mut here) => swept.done.append(&mut here),
                Err(trouble) => swept.failed(trouble)?,
            }
        }
        swept.done.sort_by_key(|letter| std::cmp::Reverse(order(&letter.id)));
        swept.done.truncate(limit);
        Ok(swept)
    }

    async fn newest(&self, lane: Lane, stream: &str, limit: usize) -> Result<Vec<DeadLetter>, Trouble> {
        let (mut here, mut before) = (Vec::new(), "+".to_owned());
        while here.len() < limit {
            let asked = PAGE.min(limit - here.len());
            let mut range = cmd("XREVRANGE");
            range.arg(dead_letters_of(stream)).arg(&before).arg("-").arg("COUNT").arg(asked);
            let page = self.page(lane, stream, &range).await?;
            let is_last = page.len() < asked;
            here.extend(page);
            let Some(last) = here.last().filter(|_| !is_last) else { break };
            before = format!("({}", last.id);
        }
        Ok(here)
    }

    /// The letter of an id, or of a [`DeadLetter::name`]; the lane need be said only where both have one of that id, and the name where several partitions have.
    ///
    /// # Errors
    /// No such id, several letters of that id, or no answer of the server.
    pub async fn inspect(&self, id: &str, lane: Option<Lane>) -> Result<Option<DeadLetter>, String> {
        let (home, id) = id.rsplit_once('/').map_or((None, id), |(home, id)| (Some(home), id));
        if order(id).is_none() {
            return Err(format!("`{id}` is no id of a dead letter: those are as 1700000000000-0"));
        }
        let (mut found, mut fault) = (Vec::new(), None);
        for (lane, stream) in self.streams(lane).await? {
            let dead = dead_letters_of(&stream);
            if home.is_none_or(|home| home == dead) {
                let mut range = cmd("XRANGE");
                range.arg(&dead).arg(id).arg(id).arg("COUNT").arg(1);
                match self.page(lane, &stream, &range).await {
                    Ok(page) => found.extend(page),
                    // The letter that is meant may stand in another stream.
                    Err(Trouble::Fault(why)) => fault = Some(why),
                    Err(Trouble::Lost(why)) => return Err(why),
                }
            }
        }
        if found.len() > 1 {
            let names: Vec<_> = found.iter().map(DeadLetter::name).collect();
            return Err(format!(
                "several streams have a dead letter {id}: say which lane, or one of {}",
                names.join(", ")
            ));
        }
        match (found.pop(), fault) {
            (None, Some(why)) => Err(why),
            (found, _) => Ok(found),
        }
    }

    /// Puts a letter back at the end of the stream it came from, as what it was. Whether it was there.
    ///
    /// # Errors
    /// As [`DeadLetters::inspect`]; or it cannot be added to that stream, and stays.
    pub async fn replay(&self, id: &str, lane: Option<Lane>) -> Result<bool, String> {
        match self.inspect(id, lane).await? {
            Some(letter) => self.put_back(&letter).await.map_err(|trouble| match trouble {
                Trouble::Fault(why) | Trouble::Lost(why) => why,
            }),
            None => Ok(false),
        }
    }

    async fn put_back(&self, letter: &DeadLetter) -> Result<bool, Trouble> {
        let mut replay = scripts::replay(&letter.dead_letters, &letter.stream, &letter.id);
        for (name, value) in &letter.fields {
            replay.arg(&name[..]).arg(&value[..]);
        }
        Ok(self.ask(&letter.stream, &replay).await? == Value::Int(1))
    }

    /// Puts back all there are, or those of one lane, the oldest first; those that come meanwhile stay. How many.
    ///
    /// # Errors
    /// The server does not answer. Or one cannot be put back: it and those after it stay in their stream, and the other streams are done.
    pub async fn replay_all(&self, lane: Option<Lane>) -> Result<u64, String> {
        self.sweep_replay(lane).await?.whole()
    }

    /// As [`DeadLetters::replay_all`], with how many were put back although some could not be.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn sweep_replay(&self, lane: Option<Lane>) -> Result<Swept<u64>, String> {
        let mut swept = Swept { done: 0, faults: Vec::new() };
        for (lane, stream) in self.streams(lane).await? {
            if let Err(trouble) = self.replay_stream(lane, &stream, &mut swept.done).await {
                swept.failed(trouble)?;
            }
        }
        Ok(swept)
    }

    async fn replay_stream(&self, lane: Lane, stream: &str, count: &mut u64) -> Result<(), Trouble> {
        let dead = dead_letters_of(stream);
        let mut newest = cmd("XREVRANGE");
        newest.arg(&dead).arg("+").arg("-").arg("COUNT").arg(1);
        let Some(newest) = self.page(lane, stream, &newest).await?.pop() else { return Ok(()) };
        let mut from = "-".to_owned();
        loop {
            let mut range = cmd("XRANGE");
            range.arg(&dead).arg(&from).arg(&newest.id).arg("COUNT").arg(PAGE);
            let page = self.page(lane, stream, &range).await?;
            let Some(last) = page.last() else { return Ok(()) };
            from = format!("({}", last.id);
            for letter in &page {
                *count += u64::from(self.put_back(letter).await?);
            }
        }
    }

    /// Deletes a letter. Whether it was there.
    ///
    /// # Errors
    /// As [`DeadLetters::inspect`].
    pub async fn remove(&self, id: &str, lane: Option<Lane>) -> Result<bool, String> {
        let Some(letter) = self.inspect(id, lane).await? else { return Ok(false) };
        let mut delete = cmd("XDEL");
        delete.arg(&letter.dead_letters).arg(&letter.id);
        match self.ask(&letter.stream, &delete).await {
            Ok(gone) => Ok(gone == Value::Int(1)),
            Err(Trouble::Fault(why) | Trouble::Lost(why)) => Err(why),
        }
    }

    /// Deletes all there are, or those of one lane. How many.
    ///
    /// # Errors
    /// The server does not answer, or declines for one stream; the others are done.
    pub async fn purge(&self, lane: Option<Lane>) -> Result<u64, String> {
        self.sweep_purge(lane).await?.whole()
    }

    /// As [`DeadLetters::purge`], with how many were deleted although some could not be.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn sweep_purge(&self, lane: Option<Lane>) -> Result<Swept<u64>, String> {
        let mut swept = Swept { done: 0, faults: Vec::new() };
        for (_, stream) in self.streams(lane).await? {
            match self.ask(&stream, &scripts::purge(&dead_letters_of(&stream))).await {
                Ok(Value::Int(gone)) => swept.done += u64::try_from(gone).unwrap_or_default(),
                Ok(_) => {}
                Err(trouble) => swept.failed(trouble)?,
            }
        }
        Ok(swept)
    }
}

/// The numbers of an id; `None`: it is none.
pub(crate) fn order(id: &str) -> Option<(u64, u64)> {
    let (ms, number) = id.split_once('-').unwrap_or((id, "0"));
    let number_of = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
    Some((number_of(ms)?, number_of(number)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(all: &[(&str, &[u8])]) -> Fields {
        all.iter().map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec())).collect()
    }

    #[track_caller]
    fn check(entry: &[(&str, &[u8])], names: &[&str]) {
        let of = SubscribeOptions::new("customer", "mails");
        let entry = fields(entry);
        let dead = letter("customer:backfill", "5-1", &of, 3, "no room", &entry);
        let named: Vec<_> = dead.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
        assert_eq!(named, names);
        let own = entries::Entry { id: "7-0".to_owned(), fields: dead };
        let read = DeadLetter::read("customer", Lane::Backfill, "customer:backfill", own);
        assert_eq!((read.fields, read.stream.as_str()), (entry, "customer:backfill"));
        assert_eq!((read.attempts, read.reason.as_deref()), (Some(3), Some("no room")));
        assert_eq!(read.original_id.as_deref(), Some("5-1"));
    }

    #[test]
    fn a_letter_comes_back_as_the_bytes_it_was() {
        check(&[("data", br#"{"data":{"n":1.10},"metadata":{}}"#), ("trace", b"\xff")], &["data", "trace"]);
        check(&[("data", b"no JSON")], &["data", "original:data"]);
        check(&[("body", b"\xff\x00"), ("data", b"[]")], &["data", "original:body", "original:data"]);
    }

    #[test]
    fn a_letter_that_names_a_stream_elsewhere_goes_back_to_its_own() {
        let stream = |said: &str| {
            let text = format!(r#"{{"data":1,"_dlq_metadata":{{"original_stream":"{said}"}}}}"#);
            let entry = entries::Entry { id: "7-0".to_owned(), fields: fields(&[("data", text.as_bytes())]) };
            DeadLetter::read("order", Lane::Primary, "order", entry).stream
        };
        assert_eq!(
            ["order", "order:k1", "orders", "users"].map(stream),
            ["order", "order:k1", "order", "order"]
        );
    }

    #[test]
    fn ids_are_numbers_and_no_bounds() {
        assert_eq!(order("12-3"), Some((12, 3)));
        assert_eq!(order("12"), Some((12, 0)));
        for id in ["-", "+", "(1-0", "", "1-", "1-2-3", "99999999999999999999999"] {
            assert_eq!(order(id), None, "{id}");
        }
    }
}
