//! [`ShardedEngine`] answers requests: what is of a virtual host at its shard, the rest in the lobby.

use std::sync::Arc;

use overtake_lane::{Asker, Command, ConsumerId, VhostId};
use tokio::sync::watch;

use super::{Seats, ShardedEngine, health};
use crate::api::{Connection, Health, LeaseRequest, LeasedMessage, Pending};
use crate::core::{Answer, Request};
use crate::responder::Responder;
use crate::session::Session;
use crate::snapshot::{NoSnapshot, Snapshot};

impl Responder for ShardedEngine {
    fn asker(&self) -> Asker {
        self.here.asker()
    }

    fn next_consumer(&self) -> ConsumerId {
        self.here.next_consumer()
    }

    fn respond(&self, request: Request) -> Pending<Answer> {
        let shards = Arc::clone(&self.shards);
        match request {
            Request::Do(Command::DeclareVhost { name, settings }) => {
                Box::pin(async move { shards.declare_vhost(name, settings).await })
            }
            Request::Do(Command::DeleteVhost { name }) => {
                Box::pin(async move { shards.delete_vhost(name).await })
            }
            Request::Do(Command::SetMetadata { entries }) => {
                Box::pin(async move { shards.set_metadata(entries).await })
            }
            Request::Vhosts => Box::pin(async move { shards.vhosts().await }),
            Request::Vhost(name) => Box::pin(async move { shards.vhost(&name).await }),
            Request::Metadata => Box::pin(async move { shards.metadata().await }),
            request => self.here.respond(request),
        }
    }

    fn lend(&self, lease: LeaseRequest) -> Pending<Vec<LeasedMessage>> {
        self.here.lend(lease)
    }

    fn begin(&self) -> Session {
        self.here.begin()
    }

    fn connected(&self) -> Connection {
        let seats = Arc::new(Seats::new(&self.shards));
        Arc::new(self.asked(self.here.asker().vhost, Some(seats)))
    }

    fn moved(&self, vhost: VhostId) -> Connection {
        Arc::new(self.asked(vhost, self.seats.clone()))
    }

    fn withdrawn(&self) -> watch::Receiver<u64> {
        self.here.withdrawn()
    }

    fn is_well(&self) -> Health {
        health::of_all(self.shards.all.iter().map(Responder::is_well))
    }

    fn copy(&self) -> Result<Snapshot, NoSnapshot> {
        let each = self.shards.all.iter().map(Responder::copy).collect::<Result<_, _>>()?;
        Ok(Snapshot::of_shards(each))
    }
}
