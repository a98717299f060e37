//! An intake of which nothing can be stored for a while.

use std::sync::Mutex;

use overtake_engine::{Engine, LocalEngine, Options, SystemClock};
use overtake_lane::{Given, LastValue, Settings};
use overtake_store::MemoryDisk;
use serde_json::json;
use tokio::sync::oneshot;

use super::*;
use crate::connector::Place;
use crate::sink::Work;

/// So long nothing takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is done with an inlet, in order.
#[derive(Clone)]
struct Log(mpsc::Sender<&'static str>);

impl Log {
    fn says(&self, what: &'static str) {
        self.0.try_send(what).expect("there is room for all of it");
    }
}

/// An origin that has these messages, until they are settled.
struct Always {
    log: Log,
    messages: Vec<Incoming>,
    /// Why its first connection is lost while somebody waits with what it brought.
    ending: Mutex<Option<LinkError>>,
}

struct One {
    log: Log,
    messages: Vec<Incoming>,
    ending: Option<LinkError>,
    is_handed: bool,
}

impl Origin for Always {
    fn connect(&self) -> Work<'_, Result<Box<dyn Inlet>, LinkError>> {
        self.log.says("connect");
        let ending = self.ending.lock().expect("nobody panicked").take();
        let messages = self.messages.clone();
        let inlet = One { log: self.log.clone(), messages, ending, is_handed: false };
        Box::pin(async { Ok(Box::new(inlet) as Box<dyn Inlet>) })
    }
}

impl Inlet for One {
    fn receive(&mut self, _max: usize) -> Work<'_, Result<Vec<Incoming>, LinkError>> {
        self.log.says("receive");
        if std::mem::replace(&mut self.is_handed, true) {
            return Box::pin(std::future::pending());
        }
        let messages = std::mem::take(&mut self.messages);
        Box::pin(async { Ok(messages) })
    }

    fn lost(&mut self) -> Work<'_, LinkError> {
        self.log.says("stay");
        match self.ending.take() {
            Some(ending) => Box::pin(async { ending }),
            None => Box::pin(std::future::pending()),
        }
    }

    fn settle(&mut self, _fates: Vec<Fate>) -> Work<'_, Result<(), LinkError>> {
        self.log.says("settle");
        Box::pin(async { Ok(()) })
    }

    fn close(&mut self) -> Work<'_, ()> {
        self.log.says("close");
        Box::pin(std::future::ready(()))
    }
}

struct World {
    engine: LocalEngine,
    control: mpsc::Sender<Control<IntakeView>>,
    log: mpsc::Receiver<&'static str>,
}

impl World {
    /// One message, and its queue is not there yet.
    fn new(ending: Option<LinkError>) -> Self {
        Self::with(vec![Incoming { id: "1".to_owned(), ..Incoming::default() }], ending)
    }

    fn with(messages: Vec<Incoming>, ending: Option<LinkError>) -> Self {
        Self::of(messages, ending, json!({}))
    }

    /// With this in the source besides.
    fn of(messages: Vec<Incoming>, ending: Option<LinkError>, more: serde_json::Value) -> Self {
        let options = Options { segment_bytes: 1 << 20, seed: 7, ..Options::default() };
        let engine = LocalEngine::open_on(MemoryDisk::new(7), options, Arc::new(SystemClock));
        let engine = engine.expect("the store opens");
        let mut source =
            json!({"from": {"amqp": {"url": "amqp://h", "queue": "q"}}, "to": {"queue": "late"}});
        source.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let source: Source = serde_json::from_value(source).expect("a source");
        let (told, log) = mpsc::channel(1_000);
        let origin = Arc::new(Always { log: Log(told), messages, ending: Mutex::new(ending) });
        let site =
            Site { place: Place::in_file("s"), engine: engine.connect(), life: "a".into(), is_paused: false };
        let (control, controlled) = mpsc::channel(1);
        tokio::spawn(Intake::new(site, Arc::new(source), origin).run(controlled));
        Self { engine, control, log }
    }

    /// What is done up to this and with it.
    async fn until(&mut self, last: &str) -> String {
        let mut all = Vec::new();
        while all.last() != Some(&last) {
            let next = tokio::time::timeout(PATIENCE, self.log.recv()).await.expect("in time");
            all.push(next.expect("the intake goes on"));
        }
        all.dedup();
        all.join(" · ")
    }

    async fn view(&self) -> IntakeView {
        let (caller, answer) = oneshot::channel();
        self.control.send(Control::View(caller)).await.expect("it goes on");
        answer.await.expect("an answer")
    }

    async fn state(&self) -> IntakeState {
        self.view().await.state
    }

    async fn makes_room(&self) {
        self.engine.declare_queue("late", Settings::default()).await.expect("declared");
    }
}

#[tokio::test]
async fn a_connection_is_kept_and_nothing_more_is_taken_while_there_is_no_room() {
    let mut world = World::new(None);
    assert_eq!(world.until("stay").await, "connect · receive · stay");
    assert_eq!(world.state().await, IntakeState::Blocked);
    let why = world.view().await.last_error.expect("it is said").1;
    assert_eq!(&*why, "late: no such queue");
    world.makes_room().await;
    let rest = world.until("settle").await;
    assert!(["settle", "stay · settle"].contains(&rest.as_str()), "{rest}");
    assert_eq!(world.until("receive").await, "receive");
}

#[tokio::test]
async fn one_that_is_lost_meanwhile_is_made_anew_and_brings_it_again() {
    let mut world = World::new(Some(LinkError::Lost("gone".to_owned())));
    assert_eq!(world.until("stay").await, "connect · receive · stay");
    assert_eq!(world.until("stay").await, "close · connect · receive · stay");
    world.makes_room().await;
    world.until("settle").await;
}

#[tokio::test]
async fn a_connection_is_closed_when_the_source_ends_and_when_it_is_paused() {
    let mut world = World::new(None);
    world.makes_room().await;
    world.until("settle").await;
    world.control.send(Control::Pause).await.expect("it goes on");
    assert_eq!(world.until("close").await, "receive · close");
    world.control.send(Control::Resume).await.expect("it goes on");
    assert_eq!(world.until("settle").await, "connect · receive · settle");
    let World { engine: _engine, control, mut log } = world;
    drop(control);
    let mut last = "";
    while let Some(next) = tokio::time::timeout(PATIENCE, log.recv()).await.expect("in time") {
        last = next;
    }
    assert_eq!(last, "close");
}

/// What is too large for the store only all together is taken in parts, and what is too large alone is refused alone.
#[tokio::test]
async fn messages_that_are_too_large_together_are_taken_in_parts() {
    let sizes = [100_000, 100_000, 900_000, 100_000, 100_000, 10, 100_000, 100_000];
    let message = |(nth, size): (usize, &usize)| Incoming {
        id: nth.to_string(),
        body: vec![b'x'; *size].into(),
        ..Incoming::default()
    };
    let messages = sizes.iter().enumerate().map(message).collect();
    let mut world = World::with(messages, None);
    world.makes_room().await;
    world.until("settle").await;
    let view = world.view().await;
    assert_eq!((view.taken, view.refused), (7, 1), "{view:?}");
}

/// An event that nobody can read is counted and named with where it stood, and the next event goes on.
#[tokio::test]
async fn an_event_that_is_no_json_is_counted_and_named_with_its_place() {
    let event = |place: &str, body: &'static str| Incoming {
        path: "execution-completed".to_owned(),
        place: place.to_owned(),
        body: body.into(),
        ..Incoming::default()
    };
    let messages = vec![
        event("partition 3, offset 42", "no JSON"),
        event("partition 3, offset 43", r#"{"id": "a", "type": "started"}"#),
    ];
    let settle = json!({"settle": {"queue": "late", "event": {"body": "/type"}}});
    let more = json!({"to": settle, "id": {"body": "/id"}});
    let mut world = World::of(messages, None, more);
    world.until("settle").await;
    let view = world.view().await;
    assert_eq!((view.taken, view.refused), (1, 1), "{view:?}");
    let why = view.last_error.expect("it is said").1;
    assert_eq!(
        &*why,
        "execution-completed, partition 3, offset 42: its body is no JSON, so nothing is at `/type`"
    );
}

/// What the queue for refused messages refuses as well is counted, and the next message goes on.
#[tokio::test]
async fn a_message_that_nobody_takes_is_counted_and_let_go_of() {
    let message = |id: &str, priority| Incoming { id: id.to_owned(), priority, ..Incoming::default() };
    let messages = vec![message("1", Given::Name("odd".to_owned())), message("2", Given::Missing)];
    let mut world = World::of(messages, None, json!({"refused_to": "odd"}));
    let keyed = Settings { last_value: Some(LastValue::Key), ..Settings::default() };
    world.engine.declare_queue("odd", keyed).await.expect("declared");
    world.makes_room().await;
    world.until("settle").await;
    let view = world.view().await;
    assert_eq!((view.taken, view.refused), (1, 1), "{view:?}");
    let why = view.last_error.expect("it is said").1;
    assert!(why.starts_with("odd: the message has no key"), "{why}");
}
