//! Dead letters of groups: they stay in the queue of their group, out of its lanes.

use std::collections::BTreeMap;

use hyper::Method;
use overtake_lane::BACKFILL_LANE;
use overtake_streams::Swept;
use serde_json::{Value, json};

use super::DeadLetter;
use crate::address::{path, query};
use crate::body;
use crate::client::Client;
use crate::commands::dlq::{LaneName, Of};
use crate::commands::job;
use crate::commands::queue::text;
use crate::failure::{Exit, Failure};
use crate::look_bar::LookBar;

/// Messages of one page.
const PAGE: u64 = 500;

/// Notes why nothing was done with a group, and goes on; without a broker there is nothing to go on with.
fn note(faults: &mut Vec<String>, group: &Group, done: Result<(), Failure>) -> Result<(), Failure> {
    match done {
        Err(Failure::Said { exit, what, .. }) if exit != Exit::Unreachable => {
            faults.push(format!("{}: {what}", group.queue));
            Ok(())
        }
        done => done,
    }
}

/// The broker, and whose dead letters are meant.
pub(crate) struct Broker<'a> {
    pub(crate) of: &'a Of,
    pub(crate) client: &'a Client,
    /// How far a look at the dead letters of a group is.
    pub(crate) bar: LookBar,
}

/// A group, with what its lanes are called.
struct Group {
    name: String,
    queue: String,
    /// The stream and that of its dead letters, by the lane of the queue.
    streams: BTreeMap<String, (String, String)>,
}

impl Group {
    fn of(group: &Value) -> Self {
        let streams = group["streams"].as_array().into_iter().flatten();
        let streams = streams
            .map(|stream| (text(&stream["lane"]), (text(&stream["stream"]), text(&stream["dead_letters"]))));
        Self { name: text(&group["group"]), queue: text(&group["queue"]), streams: streams.collect() }
    }

    fn letter(&self, message: &Value) -> DeadLetter {
        let death = &message["dead_letter"];
        let (stream, dead_letters) = self.streams.get(&text(&message["lane"])).cloned().unwrap_or_default();
        DeadLetter {
            id: text(&message["id"]),
            stream,
            dead_letters,
            group: self.name.clone(),
            kind: text(&message["properties"]["type"]),
            priority: text(&message["priority"]),
            died_at: text(&death["at"]),
            reason: text(&death["reason"]),
            attempts: death["delivery_count"].as_u64().unwrap_or(0),
            headers: message["headers"].as_object().cloned().unwrap_or_default(),
            body: body::of(message).unwrap_or_default(),
        }
    }
}

impl Broker<'_> {
    pub(super) async fn list(&self, limit: u64) -> Result<Swept<Vec<DeadLetter>>, Failure> {
        let mut swept = Swept { done: Vec::new(), faults: Vec::new() };
        for group in self.groups().await? {
            let messages = self.dead(&group.queue, limit, "full").await;
            let letters =
                messages.map(|all| swept.done.extend(all.iter().map(|message| group.letter(message))));
            note(&mut swept.faults, &group, letters)?;
        }
        Ok(swept)
    }

    /// One, with its queue. Ids are those of a queue: another group may have another of the same.
    pub(super) async fn find(&self, id: &str) -> Result<(DeadLetter, String), Failure> {
        self.of.named()?;
        let mut found: Vec<(DeadLetter, String)> = Vec::new();
        for group in self.groups().await? {
            match self.client.get(&path(&["v1", "queues", &group.queue, "messages", id])).await {
                Ok(message) if message["status"] == "dead" && self.is_wanted(&message) => {
                    found.push((group.letter(&message), group.queue));
                }
                Err(failure) if failure.word() != Some("no-such-message") => return Err(failure),
                _ => {}
            }
        }
        match found.len() {
            0 => Err(Failure::new(Exit::Error, format!("there is no dead letter `{id}`"))
                .hint("list them: overtake dlq list")),
            1 => Ok(found.remove(0)),
            _ => {
                let groups: Vec<&str> = found.iter().map(|(letter, _)| letter.group.as_str()).collect();
                let what = format!("`{id}` is a dead letter of several groups: {}", groups.join(", "));
                Err(Failure::usage(what).hint("say which with --group"))
            }
        }
    }

    pub(super) async fn replay(&self, id: &str) -> Result<String, Failure> {
        let (letter, queue) = self.find(id).await?;
        self.put_back(&queue, &json!({ "id": id })).await?;
        Ok(letter.stream)
    }

    pub(super) async fn replay_all(&self) -> Result<Swept<u64>, Failure> {
        let mut swept = Swept { done: 0, faults: Vec::new() };
        for group in self.groups().await? {
            note(&mut swept.faults, &group, self.replay_group(&group.queue, &mut swept.done).await)?;
        }
        Ok(swept)
    }

    async fn replay_group(&self, queue: &str, count: &mut u64) -> Result<(), Failure> {
        if self.of.lane.is_none() {
            *count += self.put_back(queue, &json!({ "all": true })).await?;
            return Ok(());
        }
        for message in self.dead(queue, u64::MAX, "none").await? {
            *count += self.put_back(queue, &json!({ "id": message["id"] })).await?;
        }
        Ok(())
    }

    pub(super) async fn purge(&self) -> Result<Swept<u64>, Failure> {
        let mut swept = Swept { done: 0, faults: Vec::new() };
        for group in self.groups().await? {
            note(&mut swept.faults, &group, self.purge_group(&group.queue, &mut swept.done).await)?;
        }
        Ok(swept)
    }

    async fn purge_group(&self, queue: &str, count: &mut u64) -> Result<(), Failure> {
        if self.of.lane.is_none() {
            let purge = path(&["v1", "queues", queue, "purge"]);
            let answer = self.client.post(&purge, &json!({ "status": "dead" })).await?;
            *count += answer["count"].as_u64().unwrap_or(0);
            return Ok(());
        }
        for message in self.dead(queue, u64::MAX, "none").await? {
            let message = path(&["v1", "queues", queue, "messages", &text(&message["id"])]);
            self.client.ask(Method::DELETE, &message, None).await?;
            *count += 1;
        }
        Ok(())
    }

    async fn put_back(&self, queue: &str, which: &Value) -> Result<u64, Failure> {
        let to = path(&["v1", "queues", queue, "replay"]);
        let answer = job::change(self.client, true, &to, which).await?;
        Ok(answer["count"].as_u64().unwrap_or(0))
    }

    /// The groups that are meant.
    async fn groups(&self) -> Result<Vec<Group>, Failure> {
        let categories = match &self.of.category {
            Some(category) => vec![self.client.get(&path(&["v1", "categories", category])).await?],
            None => {
                let mut all = self.client.get("/v1/categories").await?;
                all["categories"].as_array_mut().map(std::mem::take).unwrap_or_default()
            }
        };
        let groups =
            categories.iter().flat_map(|category| category["groups"].as_array().into_iter().flatten());
        let wanted = |group: &Group| self.of.group.as_ref().is_none_or(|name| *name == group.name);
        let groups: Vec<Group> = groups.map(Group::of).filter(wanted).collect();
        match (&self.of.group, groups.is_empty()) {
            (Some(group), true) => Err(Failure::new(Exit::Error, format!("there is no group `{group}`"))
                .hint("list them: overtake category list")),
            _ => Ok(groups),
        }
    }

    /// Dead letters of a queue that are in the lane that is meant, the newest first.
    async fn dead(&self, queue: &str, limit: u64, bodies: &str) -> Result<Vec<Value>, Failure> {
        let (mut all, mut cursor, mut looked_at) = (Vec::new(), None::<String>, 0);
        loop {
            let said = [("status", "dead"), ("order", "newest"), ("body", bodies)];
            let mut pairs: Vec<_> =
                said.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            pairs.push(("limit".to_owned(), PAGE.min(limit).to_string()));
            pairs.extend(cursor.take().map(|cursor| ("cursor".to_owned(), cursor)));
            let mut page =
                self.client.get(&(path(&["v1", "queues", queue, "messages"]) + &query(&pairs))).await?;
            let messages = page["messages"].as_array_mut().map(std::mem::take).unwrap_or_default();
            all.extend(messages.into_iter().filter(|message| self.is_wanted(message)));
            cursor = page["next_cursor"].as_str().map(ToOwned::to_owned);
            if cursor.is_none() || all.len() as u64 >= limit {
                all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
                return Ok(all);
            }
            looked_at += page["looked_at"].as_u64().unwrap_or(0);
            let in_queue = page["in_queue"].as_u64().unwrap_or(0).max(looked_at);
            self.bar.show_found(looked_at, in_queue, all.len() as u64);
        }
    }

    fn is_wanted(&self, message: &Value) -> bool {
        match self.of.lane {
            None => true,
            // Where categories have one lane it has another name.
            Some(LaneName::Primary) => message["lane"] != BACKFILL_LANE,
            Some(LaneName::Backfill) => message["lane"] == BACKFILL_LANE,
        }
    }
}
