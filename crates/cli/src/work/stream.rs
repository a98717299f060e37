//! The streams of a category in Redis: entries are held by a subscriber, which keeps them until they are settled.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use overtake_streams::{Entry, Fate, Lanes, Subscriber};
use serde_json::{Value, json};
use tokio::sync::RwLock;
use tokio::time::timeout;

use super::item::Item;
use super::source::{Answer, How, Report};
use super::stage::{Stage, Stages};
use crate::failure::{Exit, Failure};

/// So long it takes at least to know that there is nothing, ms: both lanes are asked.
const WAIT_MS_MIN: u64 = 1_000;

/// The streams of a category.
pub(crate) struct Stream {
    /// None once it is closed.
    subscriber: RwLock<Option<Subscriber>>,
    category: String,
    lanes: Lanes,
    stages: Stages,
    /// What programs work on, by receipts.
    held: Mutex<HashMap<String, Entry>>,
}

impl Stream {
    /// What a subscriber reads.
    pub(crate) fn new(subscriber: Subscriber, stages: Stages) -> Self {
        let options = subscriber.options();
        let (category, lanes) = (options.category.clone(), options.lanes.clone());
        Self { category, lanes, subscriber: RwLock::new(Some(subscriber)), stages, held: Mutex::default() }
    }

    /// The first that comes in time.
    pub(crate) async fn lease(&self, wait_ms: u64) -> Result<Vec<Item>, Failure> {
        let subscriber = self.subscriber.read().await;
        let Some(subscriber) = &*subscriber else { return Ok(Vec::new()) };
        let wait = Duration::from_millis(wait_ms.max(WAIT_MS_MIN));
        let next = tokio::select! {
            biased;
            next = timeout(wait, subscriber.next()) => next,
            // Messages that come now are given back when the subscriber is closed.
            () = self.stages.reached(Stage::Finishing) => return Ok(Vec::new()),
        };
        match next {
            Err(_) => Ok(Vec::new()),
            Ok(Err(why)) => Err(Failure::new(Exit::Error, why)),
            Ok(Ok(entry)) => {
                let message = message(&entry, &self.lanes);
                let item = Item::of(&message, &self.category)?;
                self.held().insert(item.receipt.clone(), entry);
                Ok(vec![item])
            }
        }
    }

    /// As [`super::source::Supply::settle`]. What is released stays ours until another takes it over, or is given back at the end.
    pub(crate) async fn settle(&self, receipt: &str, how: How, report: Option<&Report>) -> Answer {
        let entry = self.held().remove(receipt);
        let subscriber = self.subscriber.read().await;
        let (Some(entry), Some(subscriber)) = (entry, &*subscriber) else { return Answer::Stale };
        let error = report.and_then(|report| report.error.as_deref()).unwrap_or("it failed");
        let told = match how {
            How::Ack => {
                subscriber.ack(&entry).await.map(|is_ours| if is_ours { Answer::Done } else { Answer::Stale })
            }
            How::Nack { .. } => subscriber.fail(&entry, error).await.map(answer_of),
            How::Reject | How::Timeout => subscriber.reject(&entry, error).await.map(answer_of),
            How::Release => return Answer::Done,
        };
        told.unwrap_or_else(Answer::Declined)
    }

    /// Gives back what is held. Where the server does not hear it, others take it over in time.
    pub(crate) async fn close(&self) {
        if let Some(subscriber) = self.subscriber.write().await.take() {
            let _ = subscriber.stop().await;
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.held.lock().expect("nothing panics under this lock")
    }
}

fn answer_of(fate: Fate) -> Answer {
    match fate {
        Fate::Again(_) | Fate::Dead => Answer::Done,
        Fate::Gone => Answer::Stale,
        Fate::Kept(why) => Answer::Declined(why),
    }
}

/// An entry as the API shows messages.
fn message(entry: &Entry, lanes: &Lanes) -> Value {
    let metadata = entry.metadata();
    let said = |at: &str| metadata.pointer(at).cloned().unwrap_or_default();
    let id = said("/headers/id");
    json!({
        "id": if id.is_string() { id } else { entry.id().into() },
        "receipt": format!("{}/{}", entry.stream(), entry.id()),
        "entry": entry.id(),
        "stream": entry.stream(),
        "lane": entry.lane().to_string(),
        "priority": entry.priority_in(lanes),
        "type": said("/headers/type"),
        "delivery_count": entry.attempt(),
        "metadata": if metadata.is_null() { Value::Null } else { metadata.to_string().into() },
        "body": entry.body(),
    })
}
