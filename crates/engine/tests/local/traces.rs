//! What the broker tells of its part in the traces of messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_engine::conformance::words::{message, settings};
use overtake_engine::traces::{Operation, Span, SpanId, SpanQueue, Traces};
use overtake_engine::{
    ConsumeRequest, DeleteOnly, Engine, LeaseRequest, LeasedMessage, LocalEngine, ManualClock, NewMessage,
    Options, Select,
};
use overtake_lane::{DeadLetterTo, Outcome, Settings, Status};
use overtake_store::MemoryDisk;

use crate::support::{START, clock, options};

const SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A broker that tells its spans.
struct Traced {
    disk: MemoryDisk,
    clock: Arc<ManualClock>,
    queue: Arc<SpanQueue>,
    options: Options,
    engine: Option<LocalEngine>,
    /// How spans were called that were told.
    names: BTreeMap<SpanId, String>,
}

impl Traced {
    async fn new(settings: Settings) -> Self {
        Self::with(settings, 1.0, Options::default().memory_bytes).await
    }

    async fn with(settings: Settings, share: f64, memory_bytes: u64) -> Self {
        let (clock, queue) = (clock(), SpanQueue::new(1_000));
        let traces = Traces::new(Arc::clone(&queue) as Arc<_>, share).by(clock.clone());
        let options = Options { traces: Some(traces), memory_bytes, ..options(64 << 10) };
        let mut traced =
            Self { disk: MemoryDisk::new(1), clock, queue, options, engine: None, names: BTreeMap::new() };
        traced.open();
        traced.engine().declare_queue("q", settings).await.expect("declared");
        traced
    }

    fn open(&mut self) {
        self.engine.take();
        let opened = LocalEngine::open_on(self.disk.clone(), self.options.clone(), self.clock.clone());
        self.engine = Some(opened.expect("it opens"));
    }

    fn engine(&self) -> &LocalEngine {
        self.engine.as_ref().expect("it is open")
    }

    async fn publish(&self, messages: &[&str]) {
        self.engine().publish(messages.iter().map(|text| traced(text)).collect()).await.expect("published");
    }

    async fn lease(&self, queue: &str, max: u32) -> Vec<LeasedMessage> {
        self.engine().lease(LeaseRequest::new(queue.into(), max)).await.expect("leased")
    }

    async fn settle(&self, leased: &[LeasedMessage], outcome: Outcome) {
        let receipts = leased.iter().map(|leased| leased.receipt).collect();
        self.engine().settle(receipts, outcome).await.expect("settled");
    }

    /// All that was told since this was last asked: `wait a#1 2..5 leased after publish a`.
    fn told(&mut self) -> Vec<String> {
        let spans = self.queue.take(usize::MAX);
        for span in &spans {
            assert_eq!(span.about.context.parent.to_string(), "b7ad6b7169203331");
            let name = name_of(span);
            assert!(self.names.insert(span.span_id, name.clone()).is_none(), "{name} is told once");
        }
        let mut told: Vec<&Span> = spans.iter().collect();
        told.sort_by_key(|span| (span.start, span.about.id.clone(), span.operation));
        told.into_iter().map(|span| self.picture(span)).collect()
    }

    fn picture(&self, span: &Span) -> String {
        let since = |ns: u64| ns / 1_000_000 - START.0;
        let outcome = span.outcome.map_or(String::new(), |outcome| format!(" {}", outcome.word()));
        let link = span.link.map(|link| self.names.get(&link).cloned().unwrap_or_else(|| "?".to_owned()));
        let link = link.map_or(String::new(), |link| format!(" after {link}"));
        format!("{} {}..{}{outcome}{link}", name_of(span), since(span.start), since(span.end))
    }

    #[track_caller]
    fn tells(&mut self, expect: &[&str]) {
        assert_eq!(self.told(), expect);
    }
}

fn name_of(span: &Span) -> String {
    let attempt =
        if span.operation == Operation::Publish { String::new() } else { format!("#{}", span.attempt) };
    let queue = if &*span.about.queue == "q" { String::new() } else { format!("@{}", span.about.queue) };
    format!("{} {}{queue}{attempt}", span.operation.word(), span.about.id)
}

/// A message of a trace, as a story writes it.
fn traced(text: &str) -> NewMessage {
    message("q", &format!("{text},h.traceparent={SAMPLED}"))
}

#[tokio::test]
async fn a_message_is_published_waits_and_is_handled() {
    let mut traced = Traced::new(Settings::default()).await;
    traced.publish(&["a:5,id=a"]).await;
    traced.tells(&["publish a 0..0"]);
    traced.clock.advance(3);
    let leased = traced.lease("q", 1).await;
    traced.clock.advance(4);
    traced.settle(&leased, Outcome::Ack).await;
    let spans = traced.queue.take(10);
    let about = &spans[0].about;
    let said =
        (&*about.vhost, &*about.queue, &*about.lane, about.priority.to_string(), about.context.is_sampled);
    assert_eq!(said, ("/", "q", "5", "5".to_owned(), true));
    assert_eq!(about.context.trace_id.to_string(), "0af7651916cd43dd8448eb211c80319c");
    spans.into_iter().for_each(|span| overtake_engine::traces::SpanSink::ended(&*traced.queue, span));
    traced.tells(&["wait a#1 0..3 leased after publish a", "handle a#1 3..7 acked after wait a#1"]);
}

#[tokio::test]
async fn each_attempt_has_a_wait_and_a_handling_of_its_own() {
    let mut traced = Traced::new(settings(|s| s.delivery_limit = 3)).await;
    traced.publish(&["a:5,id=a"]).await;
    for (outcome, pause) in
        [(Outcome::Nack { delay_ms: Some(0) }, 1), (Outcome::Release, 2), (Outcome::Reject, 3)]
    {
        traced.clock.advance(1);
        let leased = traced.lease("q", 1).await;
        traced.clock.advance(pause);
        traced.settle(&leased, outcome).await;
    }
    traced.tells(&[
        "publish a 0..0",
        "wait a#1 0..1 leased after publish a",
        "handle a#1 1..2 failed after wait a#1",
        "wait a#2 2..3 leased after handle a#1",
        "handle a#2 3..5 released after wait a#2",
        "wait a#2 5..6 leased after handle a#2",
        "handle a#2 6..9 dead_lettered after wait a#2",
    ]);
    traced.clock.advance(1);
    traced.engine().replay("q", Select::Id("a".to_owned()), None).await.expect("replayed");
    traced.lease("q", 1).await;
    traced.tells(&["wait a#1 10..10 leased"]);
    traced.clock.advance(30_000);
    traced.lease("q", 1).await;
    traced.tells(&[
        "handle a#1 10..30010 lost after wait a#1",
        "wait a#2 30010..30010 leased after handle a#1",
    ]);
}

#[tokio::test]
async fn a_dead_letter_waits_where_it_goes() {
    let to_dead = settings(|s| {
        s.dead_letter = DeadLetterTo::Queue("dead".to_owned());
        s.history = Some("past".to_owned());
    });
    let mut traced = Traced::new(to_dead).await;
    for queue in ["dead", "past"] {
        traced.engine().declare_queue(queue, Settings::default()).await.expect("declared");
    }
    traced.publish(&["a:5,id=a", "b:4,id=b,ttl=2"]).await;
    let leased = traced.lease("q", 1).await;
    traced.settle(&leased, Outcome::Reject).await;
    traced.clock.advance(5);
    let dead = traced.lease("dead", 2).await;
    traced.settle(&dead, Outcome::Ack).await;
    let told = traced.told();
    assert!(told.contains(&"handle a#1 0..0 dead_lettered after wait a#1".to_owned()), "{told:#?}");
    assert!(told.contains(&"wait b#1 0..5 expired after publish b".to_owned()), "{told:#?}");
    assert!(told.iter().all(|span| !span.contains("@past")), "nobody waits in a history: {told:#?}");
}

#[tokio::test]
async fn a_dead_letter_goes_on_in_its_trace() {
    let mut traced = Traced::new(settings(|s| s.dead_letter = DeadLetterTo::Queue("dead".to_owned()))).await;
    traced.engine().declare_queue("dead", Settings::default()).await.expect("declared");
    traced.publish(&["a:5,id=a"]).await;
    let leased = traced.lease("q", 1).await;
    traced.settle(&leased, Outcome::Reject).await;
    traced.clock.advance(5);
    let dead = traced.lease("dead", 1).await;
    traced.settle(&dead, Outcome::Ack).await;
    traced.told();
    let mut names: Vec<&str> = traced.names.values().map(String::as_str).collect();
    names.sort_unstable();
    let all = ["handle a#1", "handle a@dead#1", "publish a", "wait a#1", "wait a@dead#1"];
    assert_eq!(names, all);
}

#[tokio::test]
async fn a_wait_ends_when_the_message_does() {
    let mut traced = Traced::new(settings(|s| {
        s.dead_letter = DeadLetterTo::Drop;
        s.max_length = 5;
    }))
    .await;
    traced.publish(&["a:5,id=a", "b:5,id=b,ttl=3", "c:5,id=c", "d:5,id=d", "e:5,id=e"]).await;
    traced.publish(&["f:6,id=f"]).await;
    assert!(traced.told().contains(&"wait a#1 0..0 evicted after publish a".to_owned()));
    traced.engine().remove("q", Select::Id("c".to_owned())).await.expect("removed");
    traced.clock.advance(4);
    traced.engine().queue("q").await.expect("there");
    traced.tells(&["wait b#1 0..4 expired after publish b", "wait c#1 0..0 removed after publish c"]);
    traced.lease("q", 1).await;
    traced.told();
    traced.engine().purge("q", None).await.expect("purged");
    assert!(traced.told().iter().all(|span| span.contains("removed after publish")));
    traced.publish(&["g:1,id=g"]).await;
    traced.engine().delete_queue("q", DeleteOnly::default()).await.expect("deleted");
    traced.tells(&[
        "handle f#1 4..4 removed after wait f#1",
        "publish g 4..4",
        "wait g#1 4..4 removed after publish g",
    ]);
}

#[tokio::test]
async fn whoever_is_pushed_to_handles_until_it_settles_or_goes() {
    let mut traced = Traced::new(Settings::default()).await;
    traced.publish(&["a:6,id=a", "b:5,id=b"]).await;
    traced.told();
    let mut consumer = traced.engine().consume(ConsumeRequest::new("q".into())).await.expect("consumes");
    let first = consumer.next().await.expect("it comes");
    consumer.next().await.expect("it comes");
    traced.clock.advance(2);
    traced.engine().settle(vec![first.receipt], Outcome::Ack).await.expect("settled");
    drop(consumer);
    while traced.engine().message("q", "b").await.expect("there").message.status == Status::Leased {
        tokio::task::yield_now().await;
    }
    traced.tells(&[
        "wait a#1 0..0 leased after publish a",
        "handle a#1 0..2 acked after wait a#1",
        "wait b#1 0..0 leased after publish b",
        "handle b#1 0..2 lost after wait b#1",
    ]);
    let no_ack = ConsumeRequest { no_ack: true, ..ConsumeRequest::new("q".into()) };
    let mut consumer = traced.engine().consume(no_ack).await.expect("consumes");
    consumer.next().await.expect("it comes");
    traced.tells(&["wait b#2 2..2 leased after handle b#1"]);
}

#[tokio::test]
async fn what_is_not_sampled_is_not_told() {
    for (share, flags) in [(1.0, "00"), (0.0, "01")] {
        let traced = Traced::with(Settings::default(), share, 1 << 20).await;
        let parent = format!("{}{flags}", SAMPLED.strip_suffix("01").expect("flags"));
        let said =
            ["a:5".to_owned(), format!("b:5,h.traceparent={parent}"), "c:5,h.traceparent=none".to_owned()];
        let messages = said.iter().map(|text| message("q", text)).collect();
        traced.engine().publish(messages).await.expect("published");
        let leased = traced.lease("q", 3).await;
        assert_eq!(leased.len(), 3);
        traced.settle(&leased, Outcome::Ack).await;
        assert!(traced.queue.is_empty() && traced.queue.dropped() == 0);
    }
}

#[tokio::test]
async fn a_message_of_an_earlier_life_is_still_of_its_trace() {
    for memory_bytes in [1 << 20, 0] {
        let mut traced = Traced::with(Settings::default(), 1.0, memory_bytes).await;
        traced.publish(&["a:5,id=a"]).await;
        traced.told();
        traced.open();
        traced.clock.advance(7);
        let leased = traced.lease("q", 1).await;
        traced.settle(&leased, Outcome::Ack).await;
        traced.tells(&["wait a#1 0..7 leased after publish a", "handle a#1 7..7 acked after wait a#1"]);
    }
}

#[tokio::test]
async fn a_queue_that_is_full_of_spans_drops_them_and_counts() {
    let mut traced = Traced::new(Settings::default()).await;
    let queue = SpanQueue::new(3);
    let traces = Traces::new(Arc::clone(&queue) as Arc<_>, 1.0).by(traced.clock.clone());
    traced.options.traces = Some(traces);
    traced.open();
    traced.publish(&["a:5", "b:5", "c:5", "d:5", "e:5"]).await;
    assert_eq!((queue.len(), queue.dropped()), (3, 2));
    assert_eq!(traced.lease("q", 5).await.len(), 5, "nobody waits for spans");
    assert_eq!((queue.take(2).len(), queue.len(), queue.dropped()), (2, 1, 7));
}
