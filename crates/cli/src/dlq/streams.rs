//! Dead letters in Redis: streams of their own, which all groups of a category share.

use overtake_streams::{DeadLetter as Letter, DeadLetters, Lane, Lanes, RedisServer, Swept};
use serde_json::{Map, Value, json};

use super::DeadLetter;
use crate::commands::dlq::{LaneName, Of};
use crate::failure::{Exit, Failure};

/// The dead letters of a category.
pub(crate) struct Streams<'a> {
    of: &'a Of,
    letters: DeadLetters,
}

impl<'a> Streams<'a> {
    pub(super) fn new(of: &'a Of, server: &RedisServer, lanes: Lanes) -> Result<Self, Failure> {
        let letters = DeadLetters::new(server, of.named()?, lanes).map_err(Failure::usage)?;
        Ok(Self { of, letters })
    }

    pub(super) async fn list(&self, limit: u64) -> Result<Swept<Vec<DeadLetter>>, Failure> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        // Whose they are is known once they are read.
        let asked = if self.takes_all() { limit } else { usize::MAX };
        let Swept { done: all, faults } = self.letters.sweep_list(asked).await.map_err(failed)?;
        let wanted = all.iter().filter(|letter| self.is_wanted(letter)).take(limit);
        Ok(Swept { done: wanted.map(|letter| self.told(letter)).collect(), faults })
    }

    pub(super) async fn find(&self, id: &str) -> Result<DeadLetter, Failure> {
        self.letter(id).await.map(|letter| self.told(&letter))
    }

    pub(super) async fn replay(&self, id: &str) -> Result<String, Failure> {
        let letter = self.letter(id).await?;
        match self.letters.replay(&letter.name(), None).await.map_err(failed)? {
            true => Ok(letter.stream),
            false => Err(none(id)),
        }
    }

    pub(super) async fn replay_all(&self) -> Result<Swept<u64>, Failure> {
        if self.of.group.is_none() {
            return self.letters.sweep_replay(self.lane()).await.map_err(failed);
        }
        let Swept { done: letters, faults } = self.wanted().await?;
        let mut sweep = Sweep { swept: Swept { done: 0, faults }, given_up: Vec::new() };
        for letter in &letters {
            if !sweep.given_up.contains(&letter.dead_letters) {
                sweep.count(letter, self.letters.replay(&letter.name(), None).await);
            }
        }
        Ok(sweep.swept)
    }

    pub(super) async fn purge(&self) -> Result<Swept<u64>, Failure> {
        if self.of.group.is_none() {
            return self.letters.sweep_purge(self.lane()).await.map_err(failed);
        }
        let Swept { done: letters, faults } = self.wanted().await?;
        let mut sweep = Sweep { swept: Swept { done: 0, faults }, given_up: Vec::new() };
        for letter in &letters {
            if !sweep.given_up.contains(&letter.dead_letters) {
                sweep.count(letter, self.letters.remove(&letter.name(), None).await);
            }
        }
        Ok(sweep.swept)
    }

    /// Those that are meant, the oldest first.
    async fn wanted(&self) -> Result<Swept<Vec<Letter>>, Failure> {
        let mut swept = self.letters.sweep_list(usize::MAX).await.map_err(failed)?;
        swept.done.retain(|letter| self.is_wanted(letter));
        swept.done.reverse();
        Ok(swept)
    }

    async fn letter(&self, id: &str) -> Result<Letter, Failure> {
        let found = self.letters.inspect(id, self.lane()).await.map_err(failed)?;
        found.filter(|letter| self.is_wanted(letter)).ok_or_else(|| none(id))
    }

    fn lane(&self) -> Option<Lane> {
        self.of.lane.map(|lane| match lane {
            LaneName::Primary => Lane::Primary,
            LaneName::Backfill => Lane::Backfill,
        })
    }

    fn takes_all(&self) -> bool {
        self.of.group.is_none() && self.of.lane.is_none()
    }

    fn is_wanted(&self, letter: &Letter) -> bool {
        let is_of_group = self.of.group.is_none() || self.of.group == letter.group;
        is_of_group && self.lane().is_none_or(|lane| lane == letter.lane)
    }

    fn told(&self, letter: &Letter) -> DeadLetter {
        let text = letter.text().unwrap_or_default();
        let object: Value = serde_json::from_str(text).unwrap_or_default();
        let metadata = &object["metadata"];
        let said = |at: &str| metadata.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut headers = Map::new();
        if let Some(id) = &letter.original_id {
            headers.insert("entry".to_owned(), json!(id));
        }
        if !metadata.is_null() {
            headers.insert("metadata".to_owned(), metadata.clone());
        }
        let body = if object["data"].is_null() { text.to_owned() } else { object["data"].to_string() };
        DeadLetter {
            id: letter.id.clone(),
            stream: letter.stream.clone(),
            dead_letters: letter.dead_letters.clone(),
            group: letter.group.clone().unwrap_or_default(),
            kind: said("/headers/type"),
            priority: metadata.pointer("/domain/priority").map(ToString::to_string).unwrap_or_default(),
            died_at: letter.failed_at.clone().unwrap_or_default(),
            reason: letter.reason.clone().unwrap_or_default(),
            attempts: letter.attempts.unwrap_or(0),
            headers,
            body: body.into_bytes(),
        }
    }
}

/// Letters that are gone through one by one.
struct Sweep {
    swept: Swept<u64>,
    /// The streams of dead letters of which one could not be done.
    given_up: Vec<String>,
}

impl Sweep {
    fn count(&mut self, letter: &Letter, answer: Result<bool, String>) {
        match answer {
            Ok(was_there) => self.swept.done += u64::from(was_there),
            Err(why) => {
                self.given_up.push(letter.dead_letters.clone());
                self.swept.faults.push(why);
            }
        }
    }
}

fn failed(why: String) -> Failure {
    Failure::new(Exit::Error, why)
}

fn none(id: &str) -> Failure {
    failed(format!("there is no dead letter `{id}`")).hint("list them: overtake dlq list")
}
