//! Messages to put into segments, and what comes back.

use std::sync::Arc;

use overtake_lane::{
    Death, DeathReason, Deaths, Ending, Extras, Message, Original, Place, Priority, QueueId, Record, Report,
    Route, Seq, State, Time,
};
use overtake_store::{Disk, Segment, SegmentInfo, Segments, StoreError};

/// The store of these tests.
pub const STORE_ID: u64 = 42;
/// The queue of these tests.
pub const QUEUE: QueueId = QueueId(7);

/// A message and its content.
pub type Pair = (Message, Vec<u8>);

/// A plain message with this content.
pub fn pair(seq: u64, content: &[u8]) -> Pair {
    let message = Message {
        seq: Seq(seq),
        priority: Priority(5),
        original: Original::Number(5),
        since: Time(1_700_000_000_000 + seq),
        expires: Time::NEVER,
        bytes: content.len() as u32,
        count: 0,
        place: Place::default(),
        state: State::Ready,
        extras: None,
    };
    (message, content.to_vec())
}

/// As [`pair`], with everything a message can have.
pub fn rich_pair(seq: u64, content: &[u8]) -> Pair {
    let (mut message, content) = pair(seq, content);
    message.original = Original::Name;
    message.priority = Priority(-3);
    message.expires = Time(1_800_000_000_000 - seq);
    message.count = 2;
    message.extras = Some(Box::new(Extras {
        id: Some(format!("order-{seq}").into()),
        key: Some("kéy".into()),
        key_weight: None,
        deaths: Some(deaths()),
        work: None,
        record: Some(record()),
        attempts: None,
    }));
    (message, content)
}

/// A record with everything that one can have.
pub fn record() -> Arc<Record> {
    Arc::new(Record {
        ending: Ending::Timeout,
        queue: "jobs".into(),
        lane: "critical".into(),
        queued: Time(1_640_000_000_000),
        started: Some(Time(1_650_000_000_000)),
        finished: Time(1_650_000_000_100),
        attempts: 3,
        report: Report {
            exit_code: Some(-9),
            error: Some("ran too long".into()),
            output: Some("half of it".into()),
        },
    })
}

/// A history with everything that one can have.
pub fn deaths() -> Arc<Deaths> {
    let at = |queue: &str, reason, times, ttl_ms| Death {
        reason,
        queue: queue.into(),
        lane: "high".into(),
        first_at: Time(1_640_000_000_000),
        at: Time(1_650_000_000_000),
        times,
        count: 9,
        route: Route { exchange: "orders".into(), keys: ["a.b", "c"].map(Arc::from).into_iter().collect() },
        ttl_ms,
    };
    let list = vec![
        at("elsewhere", DeathReason::DeliveryLimit, 1, None),
        at("here", DeathReason::Maxlen, 70_000, None),
        at("before", DeathReason::Expired, 1, Some(0)),
        at("before", DeathReason::Rejected, 2, Some(60_000)),
    ];
    let (from, route) = (Route::by("again", "retry"), Route::by("", "q"));
    Arc::new(Deaths::new(list, 2, from, route).expect("a history"))
}

/// The segments of a directory.
pub fn segments<D: Disk>(disk: &D) -> Segments<D> {
    Segments::open(disk.clone(), STORE_ID, 1, 2, usize::MAX).expect("the directory can be listed")
}

/// Writes a segment.
pub fn write<D: Disk>(segments: &Segments<D>, pairs: &[Pair]) -> Result<SegmentInfo, StoreError> {
    let mut writer = segments.writer(QUEUE)?;
    for (message, content) in pairs {
        writer.push(message, content)?;
    }
    writer.finish()
}

/// Reads all of a segment, in steps of `step` messages.
pub fn read_all<D: Disk>(segment: &Segment<D>, step: usize) -> Result<Vec<Pair>, StoreError> {
    let mut pairs = Vec::new();
    loop {
        let from = pairs.len() as u64;
        let spilled = segment.read(from, step)?;
        if spilled.is_empty() {
            return Ok(pairs);
        }
        for (ordinal, one) in (from..).zip(spilled) {
            assert_eq!(one.ordinal, ordinal);
            let content = segment.content(ordinal)?.expect("a message has content");
            assert_eq!(one.content.end - one.content.start, content.len() as u64);
            pairs.push((one.message, content));
        }
    }
}

/// The name of a segment.
pub fn name(number: u64) -> String {
    format!("segment-{number:012}")
}
