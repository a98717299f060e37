//! A queue of a broker: where messages are leased, and where their leases are extended and settled.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::Plan;
use super::backoff::Backoff;
use super::contact::Contact;
use super::item::Item;
use super::source::{Answer, How, Report, passes};
use super::stage::{Stage, Stages};
use crate::address::path;
use crate::client::Client;
use crate::failure::{Exit, Failure};

/// Longest that the broker waits before it answers.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// A queue of a broker.
pub(crate) struct Queue {
    client: Client,
    /// The client whose requests end when no more messages are wanted.
    leases: Client,
    queue: String,
    name: String,
    lease: Duration,
    contact: Arc<Contact>,
}

impl Queue {
    /// The queue that was named.
    pub(crate) fn new(client: Client, plan: &Plan, contact: Arc<Contact>, stages: &Stages) -> Self {
        let stages = stages.clone();
        let leases = client.until(move || {
            let stages = stages.clone();
            async move { stages.reached(Stage::Finishing).await }
        });
        Self {
            client,
            leases,
            queue: plan.queue.clone(),
            name: plan.name.clone(),
            lease: plan.lease,
            contact,
        }
    }

    /// Where the broker is.
    pub(crate) fn url(&self) -> &str {
        self.client.url()
    }

    /// The virtual host that is meant.
    pub(crate) fn vhost(&self) -> &str {
        self.client.vhost()
    }

    /// Leases up to `max` messages: what is there, else the first that comes in time. Once the worker is to stop it waits no longer, and
    /// fails where nothing came.
    pub(crate) async fn lease(&self, max: usize, wait_ms: u64) -> Result<Vec<Item>, Failure> {
        let request = json!({
            "max": max,
            "wait_ms": wait_ms,
            "visibility_timeout_ms": ms(self.lease),
            "worker": self.name,
        });
        let answer = self.leases.ask_waiting(wait_ms, &self.path(&["leases"]), &request).await?;
        self.contact.leased().await;
        let messages = answer.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        messages.iter().map(|message| Item::of(message, &self.queue)).collect()
    }

    /// Extends a lease, and says what was printed so far; asks until there is an answer. The broker answers when the message is wanted
    /// back or no longer ours, else when `wait` is over.
    pub(crate) async fn extend(&self, receipt: &str, output: Option<&str>, wait: Duration) -> Answer {
        let wait = wait.min(WAIT_MAX);
        let mut request = json!({
            "receipts": [receipt],
            "visibility_timeout_ms": ms(self.lease),
            "wait_ms": ms(wait),
        });
        if let Some(output) = output {
            request["report"] = json!({ "output": output });
        }
        let mut backoff = Backoff::default();
        loop {
            // An answer that comes later is of no use.
            let asked = timeout(wait + self.lease / 3, self.ask("extend", &request, ms(wait))).await;
            let late = |_| Err(Failure::new(Exit::Empty, format!("{} does not answer", self.url())));
            match asked.unwrap_or_else(late) {
                Ok(answer) => return answer,
                Err(failure) => self.contact.failed(&failure).await,
            }
            backoff.wait().await;
        }
    }

    /// Settles a lease and says how the work went; asks until there is an answer.
    ///
    /// A settlement whose answer was lost may have been done: then it is sent again, and stale means that it was.
    pub(crate) async fn settle(&self, receipt: &str, how: How, report: Option<&Report>) -> Answer {
        let request = settlement(receipt, how, report);
        let mut backoff = Backoff::default();
        let mut may_be_done = false;
        loop {
            match self.ask("settle", &request, 0).await {
                Ok(Answer::Stale) if may_be_done => return Answer::Done,
                Ok(answer) => return answer,
                Err(failure) => self.contact.failed(&failure).await,
            }
            may_be_done = true;
            backoff.wait().await;
        }
    }

    /// Asks once about one receipt, with an answer that may wait for so long. A failure is one that may pass.
    async fn ask(&self, what: &str, request: &Value, wait_ms: u64) -> Result<Answer, Failure> {
        let answer = match self.client.ask_waiting(wait_ms, &self.path(&[what]), request).await {
            Ok(answer) => answer_of(&answer.body["results"][0]),
            Err(failure) if passes(&failure) => return Err(failure),
            Err(failure) => declined(failure.word(), failure.what()),
        };
        self.contact.answered().await;
        Ok(answer)
    }

    /// Whether the queue does not have this message any more. Where that cannot be said, it may.
    pub(crate) async fn has_lost(&self, id: &str) -> bool {
        let found = self.client.get(&(self.path(&["messages", id]) + "?body=none")).await;
        found.is_err_and(|failure| {
            matches!(failure.word(), Some("no-such-message" | "no-such-queue" | "no-such-vhost"))
        })
    }

    fn path(&self, further: &[&str]) -> String {
        path(&[&["v1", "queues", &self.queue], further].concat())
    }
}

/// What a settlement says.
fn settlement(receipt: &str, how: How, report: Option<&Report>) -> Value {
    let mut request = match how {
        How::Ack => json!({ "how": "ack" }),
        How::Nack { delay_ms: None } => json!({ "how": "nack" }),
        How::Nack { delay_ms } => json!({ "how": "nack", "delay_ms": delay_ms }),
        How::Reject => json!({ "how": "reject" }),
        How::Timeout => json!({ "how": "timeout" }),
        How::Release => json!({ "how": "release" }),
    };
    request["receipts"] = json!([receipt]);
    // Of what nobody tried there is nothing to report.
    if let Some(report) = report.filter(|_| how != How::Release) {
        request["report"] =
            json!({ "exit_code": report.exit_code, "error": report.error, "output": report.output });
    }
    request
}

/// The answer about one receipt in a list of them.
fn answer_of(result: &Value) -> Answer {
    if result["ok"] != false {
        return Answer::Done;
    }
    declined(result["code"].as_str(), result["hint"].as_str().unwrap_or_default())
}

/// Where the queue is gone, so are its leases.
fn declined(code: Option<&str>, what: &str) -> Answer {
    match code {
        Some("stale-receipt" | "no-such-queue" | "no-such-vhost") => Answer::Stale,
        Some("cancel-asked") => Answer::CancelAsked,
        _ => Answer::Declined(what.to_owned()),
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settlement_says_how_and_of_which_receipt() {
        let report = Report { exit_code: Some(3), error: Some("exit 3".to_owned()), output: None };
        let said = |how| settlement("r", how, Some(&report)).to_string();
        let told = r#""receipts":["r"],"report":{"error":"exit 3","exit_code":3,"output":null}"#;
        assert_eq!(said(How::Ack), format!(r#"{{"how":"ack",{told}}}"#));
        assert_eq!(said(How::Nack { delay_ms: None }), format!(r#"{{"how":"nack",{told}}}"#));
        let delayed = format!(r#"{{"delay_ms":5,"how":"nack",{told}}}"#);
        assert_eq!(said(How::Nack { delay_ms: Some(5) }), delayed);
        assert_eq!(said(How::Reject), format!(r#"{{"how":"reject",{told}}}"#));
        assert_eq!(said(How::Timeout), format!(r#"{{"how":"timeout",{told}}}"#));
        assert_eq!(said(How::Release), r#"{"how":"release","receipts":["r"]}"#);
    }

    #[test]
    fn answers_about_a_receipt_are_known_by_their_codes() {
        let of = |code: &str| answer_of(&json!({ "ok": false, "code": code, "hint": "do" }));
        assert_eq!(answer_of(&json!({ "ok": true })), Answer::Done);
        assert_eq!(of("stale-receipt"), Answer::Stale);
        assert_eq!(of("cancel-asked"), Answer::CancelAsked);
        assert_eq!(of("access-refused"), Answer::Declined("do".to_owned()));
    }
}
