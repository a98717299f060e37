//! What no shard alone can answer: which virtual hosts there are, and where a new one goes; and what lasts and belongs to none.

use std::sync::Arc;

use overtake_lane::{Command, MetadataEntry, Refusal, VHOSTS_MAX, VhostId, VhostSettings, VhostView};
use tokio::sync::Mutex as Turn;

use super::Shards;
use crate::api::{Failure, Metadata};
use crate::core::{Answer, Request};
use crate::responder::Responder;

/// The shard that has `/`, and all metadata that is not of a virtual host.
const FIRST: usize = 0;

#[derive(Debug, Default)]
pub(super) struct Lobby {
    /// Whoever makes or deletes virtual hosts does so alone: no two of one name are made at two shards.
    changing: Turn<()>,
}

impl Shards {
    async fn ask(&self, shard: usize, request: Request) -> Result<Answer, Failure> {
        self.all[shard].respond(request).await
    }

    /// Every virtual host of a shard. Each has a `/`, of which only that of the first is one.
    async fn vhosts_of(&self, shard: usize) -> Result<Vec<VhostView>, Failure> {
        let Answer::Vhosts(mut vhosts) = self.ask(shard, Request::Vhosts).await? else {
            unreachable!("each request has its kind of answer")
        };
        vhosts.retain(|vhost| shard == FIRST || vhost.vhost != VhostId::DEFAULT);
        Ok(vhosts)
    }

    /// Every virtual host, by name.
    pub(super) async fn vhosts(&self) -> Result<Answer, Failure> {
        let mut all = Vec::new();
        for shard in 0..self.all.len() {
            all.append(&mut self.vhosts_of(shard).await?);
        }
        all.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(Answer::Vhosts(all))
    }

    /// One virtual host.
    pub(super) async fn vhost(&self, name: &str) -> Result<Answer, Failure> {
        let nowhere = Failure::from(Refusal::NoSuchVhost);
        for shard in 0..self.all.len() {
            match self.ask(shard, Request::Vhost(name.into())).await {
                Err(why) if why == nowhere => {}
                answer => return answer,
            }
        }
        Err(nowhere)
    }

    /// The shard that has a virtual host of this name.
    async fn home_of(&self, name: &str) -> Result<Option<usize>, Failure> {
        match self.vhost(name).await {
            Ok(Answer::Vhost(vhost)) => Ok(Some(self.of(vhost.vhost))),
            Ok(_) => unreachable!("each request has its kind of answer"),
            Err(why) if why == Failure::from(Refusal::NoSuchVhost) => Ok(None),
            Err(why) => Err(why),
        }
    }

    /// Makes a virtual host where there are fewest, or changes the one that is there.
    pub(super) async fn declare_vhost(
        &self,
        name: Arc<str>,
        settings: Box<VhostSettings>,
    ) -> Result<Answer, Failure> {
        let _turn = self.lobby.changing.lock().await;
        let home = match self.home_of(&name).await? {
            Some(home) => home,
            None => {
                let mut counts = Vec::with_capacity(self.all.len());
                for shard in 0..self.all.len() {
                    counts.push(self.vhosts_of(shard).await?.len());
                }
                if counts.iter().sum::<usize>() >= VHOSTS_MAX {
                    return Err(Refusal::TooManyVhosts.into());
                }
                counts.iter().enumerate().min_by_key(|(_, count)| **count).map_or(FIRST, |(shard, _)| shard)
            }
        };
        self.ask(home, Request::Do(Command::DeclareVhost { name, settings })).await
    }

    /// Deletes a virtual host, wherever it is.
    pub(super) async fn delete_vhost(&self, name: Arc<str>) -> Result<Answer, Failure> {
        let _turn = self.lobby.changing.lock().await;
        let home = self.home_of(&name).await?.unwrap_or(FIRST);
        self.ask(home, Request::Do(Command::DeleteVhost { name })).await
    }

    pub(super) async fn set_metadata(&self, entries: Vec<MetadataEntry>) -> Result<Answer, Failure> {
        self.ask(FIRST, Request::Do(Command::SetMetadata { entries })).await
    }

    /// That of all shards, by key: what is remembered of a virtual host is where that is.
    pub(super) async fn metadata(&self) -> Result<Answer, Failure> {
        let mut all = Metadata::new();
        for shard in 0..self.all.len() {
            let Answer::Metadata(mut values) = self.ask(shard, Request::Metadata).await? else {
                unreachable!("each request has its kind of answer")
            };
            all.append(&mut values);
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(Answer::Metadata(all))
    }
}
