//! A queue `q` on an engine, and what a case does with it: messages go by the names that the case gives them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex};

use overtake_lane::{
    Binding, BrowseOrder, Destination, ExchangeKind, ExchangeSettings, HeadersMatch, LaneView, LeaseTerm,
    Outcome, QueueView, Receipt, Refusal, Report, Settings, Status, UrgentCredit, VhostId,
};

use super::fixture::Fixture;
use super::words::{filter, given, header_value, message, name, name_of};
use crate::api::{
    Browse, BrowsedMessage, ConsumeRequest, Content, Engine, Failure, Filter, LeaseRequest, LeasedMessage,
    NewMessage, PublishedCopy, Refused, Select,
};
use crate::consumer::Consumer;
use crate::session::Delivered;

/// How an engine ends before it is started again: as planned, or without warning.
pub const ENDS: [End; 2] = [End::Planned, End::Crash];

/// How an engine ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It is stopped.
    Planned,
    /// It has no time to say goodbye.
    Crash,
}

/// The stage of a case.
pub struct Story<F> {
    fixture: F,
    queue: Arc<str>,
    vhost: VhostId,
    receipts: Mutex<BTreeMap<String, Vec<Receipt>>>,
}

impl<F: Fixture> Story<F> {
    /// With a queue `q` of these settings.
    pub async fn of(fixture: F, settings: Settings) -> Self {
        let story = Self { fixture, queue: name("q"), vhost: VhostId::DEFAULT, receipts: Mutex::default() };
        story.declare("q", settings).await;
        story
    }

    /// With a queue `q` of the default settings.
    pub async fn new(fixture: F) -> Self {
        Self::of(fixture, Settings::default()).await
    }

    /// The engine itself, asked where the story is.
    pub fn engine(&self) -> Arc<dyn Engine> {
        match self.vhost {
            VhostId::DEFAULT => self.fixture.engine(),
            vhost => self.fixture.engine().in_vhost(vhost),
        }
    }

    /// From now on all is asked in this virtual host.
    pub fn at(&mut self, vhost: VhostId) {
        self.vhost = vhost;
    }

    /// What it runs on.
    pub fn fixture(&self) -> &F {
        &self.fixture
    }

    // ---- topology ----

    /// Makes or changes a queue.
    pub async fn declare(&self, queue: &str, settings: Settings) {
        let settings = self.fixture.settings(settings);
        self.engine().declare_queue(queue, settings).await.expect("the queue is declared");
    }

    /// Waits until all messages of `q` are in lanes of now.
    pub async fn until_moved(&self) {
        while self.view().await.lanes.iter().any(|lane| lane.moving > 0) {
            tokio::task::yield_now().await;
        }
    }

    /// Makes an exchange and binds queues to it: `q key`, `q`.
    pub async fn exchange(&self, exchange: &str, kind: ExchangeKind, bindings: &[&str]) {
        self.exchange_as(exchange, ExchangeSettings::new(kind), bindings).await;
    }

    /// Makes an exchange of these settings and binds queues and exchanges to it: `q key`, `>x key`.
    pub async fn exchange_as(&self, exchange: &str, settings: ExchangeSettings, bindings: &[&str]) {
        self.engine().declare_exchange(exchange, settings).await.expect("the exchange is declared");
        for text in bindings {
            self.engine().bind(binding(exchange, text)).await.expect("it is bound");
        }
    }

    // ---- publish ----

    /// Publishes messages, each for itself: `a:5 b:9,key=k`.
    pub async fn publish(&self, messages: &str) -> Vec<PublishedCopy> {
        let mut copies = Vec::new();
        for text in messages.split_whitespace() {
            let published = self.engine().publish(vec![message(&self.queue, text)]).await;
            copies.extend(published.unwrap_or_else(|why| panic!("`{text}` is published: {why}")));
        }
        copies
    }

    /// Publishes one message and answers why it is refused.
    pub async fn refusal(&self, text: &str) -> Refusal {
        let published = self.engine().publish(vec![message(&self.queue, text)]).await;
        refused(published.map(|copies| copies.len()))
    }

    /// Messages, as one list.
    pub fn messages(&self, texts: &str) -> Vec<NewMessage> {
        texts.split_whitespace().map(|text| message(&self.queue, text)).collect()
    }

    /// Publishes and settles, all or none: `a b`, and how each of the others ends.
    pub async fn transact(&self, messages: &str, ends: &[(&str, Outcome)]) -> Result<(), Refusal> {
        self.batch(messages, ends).await.map_err(|refused| refused.refusal)
    }

    /// As [`Story::transact`], and what is at fault when it is refused.
    pub async fn batch(&self, messages: &str, ends: &[(&str, Outcome)]) -> Result<(), Refused> {
        let settlements = ends.iter().map(|(text, outcome)| (self.receipt(text), *outcome)).collect();
        match self.engine().transact(self.messages(messages), settlements).await {
            Ok(_) => Ok(()),
            Err(Failure::Refused(refused)) => Err(refused),
            Err(failure) => panic!("a transaction is answered: {failure}"),
        }
    }

    // ---- lease ----

    /// Leases up to `max` messages that are there, and says which: `a b c`. One delivered before has its count: `c(2)`.
    pub async fn lease(&self, max: u32) -> String {
        self.lease_for(max, None).await
    }

    /// As [`Story::lease`], for so long.
    pub async fn lease_for(&self, max: u32, visibility_ms: Option<u64>) -> String {
        let term = visibility_ms.map_or(LeaseTerm::OfQueue, LeaseTerm::Ms);
        let request = LeaseRequest { term, ..LeaseRequest::new(self.queue.clone(), max) };
        self.take(&self.engine().lease(request).await.expect("a lease is answered"))
    }

    /// Leases one message, or waits for it.
    pub async fn wait(&self, wait_ms: u64) -> String {
        self.take(&self.waiting_lease(wait_ms).await.expect("a lease is answered"))
    }

    /// Asks for one message, to be waited for.
    pub fn waiting_lease(
        &self,
        wait_ms: u64,
    ) -> impl Future<Output = Result<Vec<LeasedMessage>, Failure>> + use<F> {
        let request = LeaseRequest { wait_ms, ..LeaseRequest::new(self.queue.clone(), 1) };
        self.engine().lease(request)
    }

    /// Leases everything that can be leased, one message after the other: the order of dispatch.
    pub async fn drain(&self) -> String {
        let mut all = Vec::new();
        loop {
            match self.lease(1).await {
                none if none.is_empty() => return all.join(" "),
                one => {
                    self.ack(one.split('(').next().expect("a name")).await;
                    all.push(one);
                }
            }
        }
    }

    /// Notes the receipts of what was leased, and says what it was.
    pub fn take(&self, messages: &[LeasedMessage]) -> String {
        let note = |leased: &LeasedMessage| self.note(leased.receipt, leased.message.count, &leased.content);
        messages.iter().map(note).collect::<Vec<_>>().join(" ")
    }

    /// As [`Story::take`], of one that came by itself.
    pub fn take_delivered(&self, message: &Delivered) -> String {
        self.note(message.receipt, message.count, &message.content)
    }

    fn note(&self, receipt: Receipt, count: u32, content: &Content) -> String {
        let mut receipts = self.receipts.lock().expect("nobody panics with the receipts in hand");
        let body = name_of(content);
        receipts.entry(body.clone()).or_default().push(receipt);
        if count == 1 { body } else { format!("{body}({count})") }
    }

    /// Starts a consumer that stays.
    pub async fn consume(&self, window: u32) -> Consumer {
        self.consume_with(Some(window), None, 0).await
    }

    /// Starts a consumer with everything it may ask for.
    pub async fn consume_with(
        &self,
        window: Option<u32>,
        urgent: Option<UrgentCredit>,
        priority: i32,
    ) -> Consumer {
        let request = ConsumeRequest { window, urgent, priority, ..ConsumeRequest::new(self.queue.clone()) };
        self.engine().consume(request).await.expect("a consumer is taken")
    }

    /// The next messages of a consumer, as many as are named there.
    pub async fn next(&self, consumer: &mut Consumer, count: usize) -> String {
        let mut names = Vec::new();
        for _ in 0..count {
            let message = consumer.next().await.expect("the consumer goes on");
            names.push(self.take_delivered(&message));
        }
        names.join(" ")
    }

    // ---- settle ----

    /// The latest receipt of a message; `a#1` is its first.
    pub fn receipt(&self, text: &str) -> Receipt {
        let receipts = self.receipts.lock().expect("nobody panics with the receipts in hand");
        let (body, number) = text.split_once('#').unwrap_or((text, ""));
        let all = receipts.get(body).unwrap_or_else(|| panic!("`{body}` was never leased"));
        match number.parse::<usize>() {
            Ok(number) => all[number - 1],
            Err(_) => *all.last().expect("a list of receipts is never empty"),
        }
    }

    /// Ends one lease.
    pub async fn settle(&self, text: &str, outcome: Outcome) -> Result<(), Refusal> {
        let results =
            self.engine().settle(vec![self.receipt(text)], outcome).await.expect("settling is answered");
        assert_eq!(results.len(), 1, "one result per receipt");
        results[0]
    }

    /// Ends one lease and says how the work went.
    pub async fn finish(&self, text: &str, outcome: Outcome, report: Report) -> Result<(), Refusal> {
        self.engine().finish(self.receipt(text), outcome, report).await.expect("it is answered")
    }

    /// The work on these is done.
    pub async fn ack(&self, texts: &str) {
        self.end(texts, Outcome::Ack).await;
    }

    /// These failed.
    pub async fn nack(&self, texts: &str) {
        self.end(texts, Outcome::Nack { delay_ms: None }).await;
    }

    /// These are not wanted, and go back untouched.
    pub async fn release(&self, texts: &str) {
        self.end(texts, Outcome::Release).await;
    }

    /// These can never be done.
    pub async fn reject(&self, texts: &str) {
        self.end(texts, Outcome::Reject).await;
    }

    async fn end(&self, texts: &str, outcome: Outcome) {
        for text in texts.split_whitespace() {
            let settled = self.settle(text, outcome).await;
            settled.unwrap_or_else(|refusal| panic!("the lease of `{text}` ends: {refusal}"));
        }
    }

    /// Lengthens a lease.
    pub async fn extend(&self, text: &str, visibility_ms: u64) -> Result<(), Refusal> {
        let results = self
            .engine()
            .extend(vec![self.receipt(text)], visibility_ms)
            .await
            .expect("extending is answered");
        results[0]
    }

    // ---- administration ----

    /// Gives messages another priority: by id, or `*filter`.
    pub async fn reprioritise(&self, which: &str, priority: &str) -> Result<u64, Refusal> {
        answered(self.engine().reprioritise(&self.queue, select(which), given(priority)).await)
    }

    /// Removes messages: by id, or `*filter`.
    pub async fn remove(&self, which: &str) -> Result<u64, Refusal> {
        answered(self.engine().remove(&self.queue, select(which)).await)
    }

    /// Takes messages back, or asks for them: by id, or `*filter`.
    pub async fn cancel(&self, which: &str) -> Result<u64, Refusal> {
        answered(self.engine().cancel_messages(&self.queue, select(which)).await)
    }

    /// Puts dead letters back: by id, or `*filter`.
    pub async fn replay(&self, which: &str, promote: Option<&str>) -> Result<u64, Refusal> {
        answered(self.engine().replay(&self.queue, select(which), promote.map(given)).await)
    }

    /// Purges.
    pub async fn purge(&self, status: Option<Status>) -> u64 {
        self.engine().purge(&self.queue, status).await.expect("the purge is done")
    }

    // ---- time ----

    /// Lets time pass.
    pub async fn advance(&self, ms: u64) {
        self.fixture.advance(ms).await;
    }

    /// Ends the engine and starts it again.
    pub async fn again(&mut self, how: End) {
        match how {
            End::Planned => self.fixture.restart().await,
            End::Crash => self.fixture.crash().await,
        }
    }

    /// Returns when all that was done before is durable, also what is not confirmed, such as leases.
    pub async fn durable(&self) {
        self.declare("fence", Settings::default()).await;
        self.engine()
            .delete_queue("fence", crate::api::DeleteOnly::default())
            .await
            .expect("the fence is gone");
    }

    // ---- see ----

    /// What is in `q`: `a b · leased c · delayed d · dead e`.
    pub async fn left(&self) -> String {
        self.left_in("q").await
    }

    /// What is in a queue, in dispatch order.
    pub async fn left_in(&self, queue: &str) -> String {
        let mut groups = Vec::new();
        for (status, label) in [
            (Status::Ready, ""),
            (Status::Leased, "leased "),
            (Status::Delayed, "delayed "),
            (Status::Dead, "dead "),
        ] {
            let browse = Browse {
                filter: Filter { status: Some(status), ..Filter::default() },
                limit: crate::api::BROWSE_LIMIT_MAX,
                ..Browse::default()
            };
            let page = self.engine().browse(queue, browse).await.expect("the queue is browsed");
            let names: Vec<String> = page.messages.iter().map(|message| name_of(&message.content)).collect();
            if !names.is_empty() {
                groups.push(format!("{label}{}", names.join(" ")));
            }
        }
        groups.join(" · ")
    }

    /// What a filter finds, in an order.
    pub async fn find(&self, order: BrowseOrder, text: &str) -> String {
        let limit = crate::api::BROWSE_LIMIT_MAX;
        let browse = Browse { filter: filter(text), order, limit, ..Browse::default() };
        let page = self.engine().browse(&self.queue, browse).await.expect("the queue is browsed");
        assert_eq!(page.next, None, "everything fits one page");
        let names: Vec<String> = page.messages.iter().map(|message| name_of(&message.content)).collect();
        names.join(" ")
    }

    /// One message by its id.
    pub async fn show(&self, id: &str) -> BrowsedMessage {
        self.engine().message(&self.queue, id).await.expect("the message is there")
    }

    /// The queue.
    pub async fn view(&self) -> QueueView {
        self.engine().queue(&self.queue).await.expect("the queue is there")
    }

    /// One lane of the queue.
    pub async fn lane(&self, lane: &str) -> LaneView {
        let view = self.view().await;
        view.lanes
            .into_iter()
            .find(|there| &*there.lane == lane)
            .unwrap_or_else(|| panic!("there is a lane `{lane}`"))
    }

    /// Messages leased now.
    pub async fn leased(&self) -> u64 {
        self.view().await.lanes.iter().map(|lane| lane.leased).sum()
    }

    /// Returns when so many leases wait.
    pub async fn until_waiting(&self, waiting: u64) {
        while self.view().await.waiting != waiting {
            tokio::task::yield_now().await;
        }
    }

    /// Returns when nobody consumes any more.
    pub async fn until_no_consumer(&self) {
        while self.view().await.consumers != 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Returns when so many messages are leased.
    pub async fn until_leased(&self, leased: u64) {
        while self.leased().await != leased {
            tokio::task::yield_now().await;
        }
    }
}

/// A binding as a story writes it: `queue key`, `queue h.colour=red h.size=9 any`, `>exchange key`.
pub fn binding(exchange: &str, text: &str) -> Binding {
    let mut words = text.split_whitespace();
    let to = words.next().expect("a binding names where it leads");
    let to = match to.strip_prefix('>') {
        Some(exchange) => Destination::Exchange(name(exchange)),
        None => Destination::Queue(name(to)),
    };
    let mut binding = Binding::new(exchange, to, "");
    for word in words {
        match word.strip_prefix("h.").and_then(|header| header.split_once('=')) {
            Some((name, value)) => binding.headers.push((name.to_owned(), header_value(value))),
            None if word == "any" => binding.matching = HeadersMatch::Any,
            None => word.clone_into(&mut binding.routing_key),
        }
    }
    binding
}

fn select(which: &str) -> Select {
    match which.strip_prefix('*') {
        Some(text) => Select::Matching(filter(text)),
        None => Select::Id(which.to_owned()),
    }
}

/// An answer that may be a refusal, but nothing worse.
pub fn answered<T>(result: Result<T, Failure>) -> Result<T, Refusal> {
    match result {
        Ok(answer) => Ok(answer),
        Err(Failure::Refused(refused)) => Err(refused.refusal),
        Err(Failure::Unavailable(why)) => panic!("the engine is available: {why}"),
    }
}

/// The refusal that an answer is.
pub fn refused<T: std::fmt::Debug>(result: Result<T, Failure>) -> Refusal {
    answered(result).expect_err("it is refused")
}
