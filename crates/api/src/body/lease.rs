//! Bodies that lease, settle and extend, and transactions.

use overtake_engine::NewMessage;
use overtake_lane::{Outcome, Receipt, Report};
use serde::Deserialize;
use utoipa::ToSchema;

use super::message::each;
use super::{Bounded, DurationMs, Limits, MESSAGES_MAX, Ranged, TransactionMessageIn};
use crate::problem::Problem;

/// Largest `max` of a lease request.
const LEASE_MAX: u64 = 1_000;
/// Largest `wait_ms` of a lease request.
const WAIT_MS_MAX: u64 = 60_000;
/// Most receipts in one list.
const RECEIPTS_MAX: usize = 10_000;

/// Leases, each with how it ends.
type Settlements = Vec<(Receipt, Outcome)>;

/// A request for messages.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = LeaseRequest)]
pub struct LeaseIn {
    /// Most messages: 1 to 1,000, else 1.
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1000)]
    pub max: Option<Ranged<1, LEASE_MAX>>,
    /// Wait so long for the first one, ms: up to 60,000, else 0.
    #[schema(value_type = Option<u64>, maximum = 60000)]
    pub wait_ms: Option<Ranged<0, WAIT_MS_MAX>>,
    /// How long the leases last, ms; missing: as the queue says; 0: they do not end by themselves.
    #[schema(value_type = Option<u64>, maximum = 315_360_000_000_u64)]
    pub visibility_timeout_ms: Option<DurationMs>,
    /// What whoever works on the messages calls itself, for people who ask who does: 1 to 200 bytes.
    pub worker: Option<String>,
    /// `base64`: show `properties_base64`, too, from which a message can be published elsewhere as it is. `text`, as without it: only what is text.
    #[serde(default)]
    pub properties: PropertiesShown,
}

/// How properties of AMQP are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum PropertiesShown {
    /// Only properties that are text, as text.
    #[default]
    Text,
    /// In addition all properties, in base64.
    Base64,
}

/// How leases end.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Settle)]
pub struct SettleIn {
    /// Which: 1 to 10,000, as they came with the messages.
    #[schema(value_type = Vec<String>)]
    pub receipts: Bounded<String, RECEIPTS_MAX>,
    /// How.
    how: How,
    /// With `nack`: wait so long before the next attempt, ms; missing: as the queue's backoff says.
    #[schema(value_type = Option<u64>, maximum = 315_360_000_000_u64)]
    delay_ms: Option<DurationMs>,
    /// With one receipt: the report of the work. The history of the queue keeps it if the message ends, else the message does.
    report: Option<ReportIn>,
}

/// What whoever did the work says of it.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Report)]
pub(crate) struct ReportIn {
    /// With what its program ended.
    exit_code: Option<i32>,
    /// What kind of error it was, in a few words.
    error: Option<String>,
    /// The end of what it printed. With `error` at most 32,768 bytes.
    output: Option<String>,
}

impl From<ReportIn> for Report {
    fn from(report: ReportIn) -> Self {
        let ReportIn { exit_code, error, output } = report;
        Self { exit_code, error: error.map(Into::into), output: output.map(Into::into) }
    }
}

/// How a lease ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum How {
    /// The work is done: the message is gone.
    Ack,
    /// The attempt failed: the message returns to its queue for another attempt.
    Nack,
    /// No attempt can succeed: the message is dead-lettered immediately.
    Reject,
    /// The work took too long: the message ends as when the `run_timeout_ms` of its queue is over.
    Timeout,
    /// Nobody worked on the message: it returns to its queue, and no attempt is counted.
    Release,
}

/// Longer leases.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Extend)]
pub struct ExtendIn {
    /// Which: 1 to 10,000, as they came with the messages.
    #[schema(value_type = Vec<String>)]
    pub receipts: Bounded<String, RECEIPTS_MAX>,
    /// From now so long, ms; 0: they do not end by themselves.
    #[schema(value_type = u64, maximum = 315_360_000_000_u64)]
    pub visibility_timeout_ms: DurationMs,
    /// With one receipt: answer only when its message is wanted back or no longer leased, else when so many ms are over: up to 60,000,
    /// else 0.
    #[schema(value_type = Option<u64>, maximum = 60000)]
    wait_ms: Option<Ranged<0, WAIT_MS_MAX>>,
    /// With one receipt: what the work has done so far, seen as `progress` of the message until the next one or the end of the lease.
    report: Option<ProgressIn>,
}

/// What the work on a message has done so far.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ProgressReport)]
pub struct ProgressIn {
    /// The end of what it has printed. At most 32,768 bytes.
    pub output: String,
}

impl ExtendIn {
    /// Takes the report on the progress of the one message that is extended.
    ///
    /// # Errors
    /// 422 for a report with more than one receipt.
    pub fn take_report(&mut self) -> Result<Option<ProgressIn>, Problem> {
        let Some(report) = self.report.take() else { return Ok(None) };
        alone(&self.receipts).map(|()| Some(report))
    }

    /// For how long the answer may wait, ms.
    ///
    /// # Errors
    /// 422 for a wait with more than one receipt.
    pub fn wait_ms(&self) -> Result<u64, Problem> {
        match &self.wait_ms {
            Some(wait) if wait.0 > 0 && self.receipts.0.len() != 1 => {
                Err(Problem::bad_value("wait_ms", "a wait is for one message: give one receipt with it"))
            }
            wait => Ok(wait.as_ref().map_or(0, |wait| wait.0)),
        }
    }
}

/// Refuses a report with more than one receipt.
fn alone(receipts: &Bounded<String, RECEIPTS_MAX>) -> Result<(), Problem> {
    let is_one = receipts.0.len() == 1;
    let wrong = || Problem::bad_value("report", "a report is of one message: give one receipt with it");
    is_one.then_some(()).ok_or_else(wrong)
}

/// Publishes and settlements: all happen or none.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Transaction)]
pub struct TransactionIn {
    /// In this order.
    #[schema(value_type = Option<Vec<TransactionMessageIn>>)]
    publish: Option<Bounded<TransactionMessageIn, MESSAGES_MAX>>,
    /// Then these. Receipts of any queues.
    #[schema(value_type = Option<Vec<SettleIn>>)]
    settle: Option<Bounded<SettleIn, MESSAGES_MAX>>,
}

impl SettleIn {
    /// Takes the report on the work on the one message that is settled.
    ///
    /// # Errors
    /// 422 for a report with more than one receipt, or with a release, of which nothing is kept.
    pub fn take_report(&mut self) -> Result<Option<Report>, Problem> {
        let Some(report) = self.report.take() else { return Ok(None) };
        if matches!(self.how, How::Release) {
            return Err(Problem::bad_value(
                "report",
                "a release has no report: it counts no attempt to keep one with",
            )
            .hint("leave the report out, or settle with `nack`; nothing was done"));
        }
        alone(&self.receipts).map(|()| Some(report.into()))
    }

    /// Returns how the leases end, as a value of the model.
    ///
    /// # Errors
    /// 422 for a `delay_ms` without `nack`.
    pub fn outcome(&self) -> Result<Outcome, Problem> {
        let delay_ms = self.delay_ms.map(|ms| ms.0);
        match (self.how, delay_ms) {
            (How::Nack, delay_ms) => Ok(Outcome::Nack { delay_ms }),
            (_, Some(_)) => Err(Problem::bad_value("delay_ms", "only `nack` takes a delay")),
            (How::Ack, None) => Ok(Outcome::Ack),
            (How::Reject, None) => Ok(Outcome::Reject),
            (How::Timeout, None) => Ok(Outcome::Timeout),
            (How::Release, None) => Ok(Outcome::Release),
        }
    }
}

impl TransactionIn {
    /// Counts the receipts of each settlement.
    pub fn receipt_counts(&self) -> Vec<usize> {
        let settle = self.settle.iter().flat_map(|list| &list.0);
        settle.map(|settle| settle.receipts.0.len()).collect()
    }

    /// Splits the transaction into messages to publish and leases to settle.
    ///
    /// # Errors
    /// 422 for the first value that is not valid, 413 for a message that exceeds the limits.
    pub fn into_parts(self, limits: Limits) -> Result<(Vec<NewMessage>, Settlements), Problem> {
        if self.publish.is_none() && self.settle.is_none() {
            return Err(Problem::bad_value("publish", "give `publish`, `settle` or both"));
        }
        let publish = self.publish.map_or_else(Vec::new, |list| list.0);
        let settle = self.settle.map_or_else(Vec::new, |list| list.0);
        let messages = each(publish, "publish", |message| message.into_new(limits))?;
        let settlements = each(settle, "settle", |settle| {
            let outcome = settle.outcome()?;
            if settle.report.is_some() {
                return Err(Problem::bad_value("report", "a report goes with a settlement of its own"));
            }
            let receipts = receipts(&settle.receipts.0)?;
            Ok(receipts.into_iter().map(move |receipt| (receipt, outcome)))
        })?;
        Ok((messages, settlements.into_iter().flatten().collect()))
    }
}

/// Parses receipts.
///
/// # Errors
/// 422 for the first receipt that is malformed.
pub fn receipts(texts: &[String]) -> Result<Vec<Receipt>, Problem> {
    let one = |(at, text): (usize, &String)| {
        text.parse().map_err(|why: overtake_lane::MalformedReceipt| {
            Problem::bad_value(format!("receipts[{at}]"), why.to_string())
        })
    };
    texts.iter().enumerate().map(one).collect()
}
