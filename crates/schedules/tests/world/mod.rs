//! A broker on a disk in memory, whose clock goes when it is told to, and its schedules.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;

use overtake_access::{Account, Change, Desk, Desks, Gate, Patterns, Permission};
use overtake_engine::{Browse, Clock, Content, Engine, LeaseRequest, LocalEngine, ManualClock, Options};
use overtake_lane::{BrowseOrder, Outcome, Settings, Time};
use overtake_schedules::{Cron, NotScheduled, Schedule, Schedules, Template};
use overtake_store::MemoryDisk;

/// 2026-11-22T09:20:00Z, a Sunday.
pub(crate) const START: Time = Time(1_795_339_200_000);
pub(crate) const MINUTE: u64 = 60_000;
pub(crate) const HOUR: u64 = 60 * MINUTE;

pub(crate) struct World {
    pub(crate) disk: MemoryDisk,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) engine: Arc<LocalEngine>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) schedules: Arc<Schedules>,
}

impl World {
    /// With a queue `q`.
    pub(crate) async fn new() -> Self {
        let (disk, clock) = (MemoryDisk::new(7), Arc::new(ManualClock::new(START)));
        let world = Self::open(disk, clock).await;
        world.engine.declare_queue("q", Settings::default()).await.expect("declared");
        world
    }

    pub(crate) async fn open(disk: MemoryDisk, clock: Arc<ManualClock>) -> Self {
        Self::open_by(disk, clock.clone(), clock).await
    }

    /// With schedules that go by a wall clock which is another than the engine's.
    pub(crate) async fn open_by(disk: MemoryDisk, clock: Arc<ManualClock>, wall: Arc<ManualClock>) -> Self {
        let options = Options { segment_bytes: 1 << 20, seed: 7, ..Options::default() };
        let engine = LocalEngine::open_on(disk.clone(), options, clock.clone() as Arc<dyn Clock>);
        let engine = Arc::new(engine.expect("the store opens"));
        let all: Arc<dyn Engine> = engine.clone();
        let gate = Arc::new(Gate::open(Arc::clone(&all), || START).await.expect("it opens"));
        let schedules = Schedules::open(all, Arc::clone(&gate), wall).await.expect("it opens");
        Self { disk, clock, engine, gate, schedules }
    }

    /// It is down for a while. What was under way is over.
    pub(crate) async fn down_for(self, ms: u64) -> Self {
        let Self { disk, clock, engine, .. } = self;
        engine.close();
        disk.clear_hook();
        clock.advance(ms);
        let world = Self::open(disk, clock).await;
        world.schedules.look().await;
        world
    }

    pub(crate) async fn desk(&self, user: &str, vhost: &str) -> Desk {
        let desks = Desks::new(self.engine.clone(), Arc::clone(&self.gate));
        desks.desk(self.gate.on_behalf_of(user), vhost).await.expect("a desk")
    }

    pub(crate) async fn put(&self, name: &str, schedule: Schedule) -> Result<bool, NotScheduled> {
        let desk = self.desk("guest", "/").await;
        self.schedules.put(&desk, name, schedule, 5).await.map(|(is_new, _)| is_new)
    }

    /// `tick`, every hour.
    pub(crate) async fn tick(&self) {
        assert_eq!(self.put("tick", schedule("0 * * * *", "x")).await, Ok(true));
    }

    pub(crate) async fn pass(&self, ms: u64) {
        self.clock.advance(ms);
        self.schedules.look().await;
    }

    /// What is in a queue, in the order of publishing: instants by hour and minute.
    pub(crate) async fn sees(&self, queue: &str) -> String {
        let browse = Browse { order: BrowseOrder::Published, limit: 100, ..Browse::default() };
        let page = self.engine.browse(queue, browse).await.expect("a page");
        let one = |message: &overtake_engine::BrowsedMessage| {
            let id = message.message.id.replace("2026-11-22T", "").replace(":00Z", "");
            let body = String::from_utf8_lossy(&message.content.body).into_owned();
            format!("{id} {body} {:?}", message.message.status).to_lowercase()
        };
        page.messages.iter().map(one).collect::<Vec<_>>().join(" · ")
    }

    /// A schedule in words.
    pub(crate) async fn told(&self, name: &str) -> String {
        let desk = self.desk("guest", "/").await;
        match self.schedules.show(&desk, name, 1).await {
            Ok(view) => {
                let body = String::from_utf8_lossy(&view.schedule.message.content.body).into_owned();
                format!("{} {body}", view.schedule.cron.line())
            }
            Err(_) => "nothing".to_owned(),
        }
    }

    pub(crate) async fn error(&self, name: &str) -> Option<String> {
        let desk = self.desk("guest", "/").await;
        let view = self.schedules.show(&desk, name, 1).await.expect("it is there");
        view.error.map(|why| why.to_string())
    }

    pub(crate) async fn lease(&self) -> Vec<overtake_engine::LeasedMessage> {
        let lease = LeaseRequest { wait_ms: HOUR, ..LeaseRequest::new("q".into(), 10) };
        self.engine.lease(lease).await.expect("leased")
    }

    pub(crate) async fn ack_all(&self) {
        let receipts = self.lease().await.iter().map(|leased| leased.receipt).collect();
        self.engine.settle(receipts, Outcome::Ack).await.expect("settled");
    }

    pub(crate) async fn user(&self, name: &str, write: &str) {
        let put = Change::PutUser { name: name.into(), account: Account::default() };
        let [configure, read] = [String::new(), String::new()];
        let permission = Permission::try_from(Patterns { configure, write: write.into(), read });
        let permission = permission.expect("patterns");
        let may = Change::SetPermission { user: name.into(), vhost: "/".into(), permission };
        self.gate.change(None, vec![put, may]).await.expect("changed");
    }
}

pub(crate) fn schedule(line: &str, body: &'static str) -> Schedule {
    let content = Content { body: body.into(), ..Content::default() };
    Schedule {
        queue: "q".into(),
        cron: Cron::parse(line, "UTC").expect("a line"),
        user: "guest".into(),
        message: Template { content, ..Template::default() },
    }
}
