//! [`LocalEngine`] answers requests: each is one ask through its door.

use std::sync::Arc;

use overtake_lane::{Asker, Command, ConsumerId, Outcome, VhostId};
use tokio::sync::{oneshot, watch};

use super::{Door, Ends, LocalEngine, line};
use crate::api::{Connection, Failure, Health, LeaseRequest, LeasedMessage, Pending};
use crate::core::{Answer, Request};
use crate::responder::Responder;
use crate::session::Session;
use crate::snapshot::{NoSnapshot, Snapshot};

fn by(asker: Asker, request: Request) -> Request {
    if asker == Asker::default() {
        return request;
    }
    Request::By { asker, request: Box::new(request) }
}

impl Responder for LocalEngine {
    fn asker(&self) -> Asker {
        let session = if let Ends::Session(connected) = &self.ends { Some(connected.session) } else { None };
        Asker { session, vhost: self.vhost }
    }

    fn next_consumer(&self) -> ConsumerId {
        self.door.next_consumer()
    }

    fn respond(&self, request: Request) -> Pending<Answer> {
        let (door, request) = (self.door.clone(), by(self.asker(), request));
        Box::pin(async move { door.ask(request).await })
    }

    fn lend(&self, lease: LeaseRequest) -> Pending<Vec<LeasedMessage>> {
        let door = self.door.clone();
        let consumer = door.next_consumer();
        let asker = self.asker();
        let request = by(asker, Request::Lease { consumer, lease });
        Box::pin(async move {
            let (caller, answer) = oneshot::channel();
            door.send(request, caller).await?;
            let mut open = OpenLease { door: &door, asker, consumer, answer: Some(answer) };
            let answer = open.answer.as_mut().expect("nobody has waited yet").await;
            open.answer = None;
            match answer {
                Ok(answer) => answer.map(leased),
                Err(_) => Err(door.unavailable()),
            }
        })
    }

    fn begin(&self) -> Session {
        line::open(&self.door, self.asker())
    }

    fn connected(&self) -> Connection {
        Arc::new(self.of_session())
    }

    fn moved(&self, vhost: VhostId) -> Connection {
        Arc::new(self.of_vhost(vhost))
    }

    fn withdrawn(&self) -> watch::Receiver<u64> {
        self.door.shared.withdrawals.subscribe()
    }

    fn is_well(&self) -> Health {
        self.door.health()
    }

    fn copy(&self) -> Result<Snapshot, NoSnapshot> {
        if let Some(why) = self.door.down.borrow().clone() {
            return Err(NoSnapshot::Unavailable(why));
        }
        self.snapshots.take(&self.door.inbox)
    }
}

fn leased(answer: Answer) -> Vec<LeasedMessage> {
    if let Answer::Leased(messages) = answer {
        messages
    } else {
        unreachable!("a lease answers with messages")
    }
}

/// A lease that is being waited for. Dropped before its end, it gives back what was on its way.
struct OpenLease<'a> {
    door: &'a Door,
    asker: Asker,
    consumer: ConsumerId,
    answer: Option<oneshot::Receiver<Result<Answer, Failure>>>,
}

impl Drop for OpenLease<'_> {
    fn drop(&mut self) {
        let Some(mut answer) = self.answer.take() else { return };
        answer.close();
        match answer.try_recv() {
            Ok(Ok(answer)) => {
                let receipts = leased(answer).iter().map(|message| message.receipt).collect();
                let release = Request::Do(Command::Settle { receipts, outcome: Outcome::Release });
                self.door.post(by(self.asker, release));
            }
            Ok(Err(_)) => {}
            Err(_) => self.door.post(Request::GiveUp { consumer: self.consumer }),
        }
    }
}
