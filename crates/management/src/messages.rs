//! Messages in and out, one at a time: to look at a queue or to try a route, not to work by.

use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use overtake_amqp::connection::Publish;
use overtake_amqp_session::message_of;
use overtake_engine::{LeaseRequest, LeasedMessage};
use overtake_lane::{LeaseTerm, Outcome};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer::{Answer, seen};
use crate::ask::Ask;
use crate::exchanges::meant;
use crate::lenient;
use crate::problem::Problem;
use crate::properties::PropertiesSaid;

/// Most messages that are fetched at once.
const COUNT_MAX: u64 = 50_000;
/// How long what was fetched is held at most, should it not be settled right after.
const HELD_MS: u64 = 30_000;

/// A message as a tool publishes it.
#[derive(Deserialize)]
struct Published {
    #[serde(default)]
    properties: PropertiesSaid,
    routing_key: String,
    payload: String,
    #[serde(default)]
    payload_encoding: PayloadEncoding,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PayloadEncoding {
    #[default]
    String,
    Base64,
}

/// Publishes, and says whether any queue got it.
pub(crate) async fn publish(ask: Ask) -> Answer {
    let desk = ask.desk().await?;
    let name = meant(ask.named("name"));
    if !name.is_empty() {
        desk.exchange(name).await?;
    }
    let said: Published = ask.body()?;
    let body = match said.payload_encoding {
        PayloadEncoding::String => said.payload.into_bytes(),
        PayloadEncoding::Base64 => STANDARD.decode(&said.payload).map_err(Problem::bad)?,
    };
    let most = ask.app.options.max_message_bytes;
    if body.len() as u64 > most {
        return Err(Problem::bad(format_args!("the message has more than {most} bytes")));
    }
    let publish = Publish {
        exchange: Bytes::copy_from_slice(name.as_bytes()),
        routing_key: said.routing_key.into(),
        mandatory: false,
        properties: said.properties.encode()?,
        body: body.into(),
    };
    let message = message_of(publish, ask.who.user())?;
    let copies = desk.publish(vec![message]).await?;
    seen(&json!({ "routed": !copies.is_empty() }))
}

/// How messages are fetched.
#[derive(Deserialize)]
struct Fetch {
    count: Value,
    #[serde(default)]
    ackmode: Option<String>,
    /// What older tools say instead.
    #[serde(default)]
    requeue: Option<bool>,
    #[serde(default)]
    encoding: Encoding,
    #[serde(default)]
    truncate: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Auto,
    Base64,
}

/// What becomes of what was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AckMode(Outcome);

impl FromStr for AckMode {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        Ok(Self(match text {
            "ack_requeue_true" | "reject_requeue_true" => Outcome::Release,
            "ack_requeue_false" => Outcome::Ack,
            "reject_requeue_false" => Outcome::Reject,
            other => {
                let known =
                    "ack_requeue_true, ack_requeue_false, reject_requeue_true or reject_requeue_false";
                return Err(Problem::bad(format_args!("ackmode is `{other}`, not one of {known}")));
            }
        }))
    }
}

impl Fetch {
    /// Most bytes of a body that are shown.
    fn cut(&self) -> Result<usize, Problem> {
        let said = self.truncate.as_ref().filter(|said| !said.is_null());
        let most = said.map(|said| lenient::within("truncate", said, 0..=u64::MAX)).transpose()?;
        Ok(most.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX)))
    }

    fn ack_mode(&self) -> Result<AckMode, Problem> {
        match (self.ackmode.as_deref(), self.requeue) {
            (Some(mode), _) => mode.parse(),
            (None, Some(true)) => Ok(AckMode(Outcome::Release)),
            (None, Some(false)) => Ok(AckMode(Outcome::Ack)),
            (None, None) => Err(Problem::bad("ackmode is missing")),
        }
    }
}

/// Fetches messages, and puts them back or not.
pub(crate) async fn get(ask: Ask) -> Answer {
    let desk = ask.desk().await?;
    let name = ask.named("name");
    desk.queue(name).await?;
    let fetch: Fetch = ask.body()?;
    let AckMode(outcome) = fetch.ack_mode()?;
    let count = lenient::within("count", &fetch.count, 1..=COUNT_MAX)?;
    let max = u32::try_from(count).expect("it is in the range");
    let cut = fetch.cut()?;
    let lease = LeaseRequest { term: LeaseTerm::Ms(HELD_MS), ..LeaseRequest::new(name.into(), max) };
    let leased = desk.lease(lease, None).await?;
    let left = crate::rates::Counts::of(&desk.queue(name).await?).ready;
    let receipts = leased.iter().map(|message| message.receipt).collect();
    desk.settle(name, receipts, outcome).await?;
    let all = leased.len() as u64;
    let shown =
        leased.iter().zip(0..).map(|(message, at)| shown(message, fetch.encoding, cut, left + all - at - 1));
    seen(&shown.collect::<Vec<Value>>().into())
}

fn shown(leased: &LeasedMessage, as_said: Encoding, cut: usize, left: u64) -> Value {
    let (route, body) = (leased.route(), &leased.content.body);
    let payload = &body[..cut.min(body.len())];
    let (payload, encoding) = match std::str::from_utf8(payload) {
        Ok(text) if as_said == Encoding::Auto => (text.to_owned(), "string"),
        _ => (STANDARD.encode(payload), "base64"),
    };
    json!({
        "payload_bytes": body.len(),
        "redelivered": leased.message.count > 1,
        "exchange": route.exchange,
        "routing_key": route.keys.first(),
        "message_count": left,
        "properties": PropertiesSaid::of(leased.content.properties.view()),
        "payload": payload,
        "payload_encoding": encoding,
    })
}
