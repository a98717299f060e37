//! The format of version 1, as a directory that is kept: what is in it must be read for ever, and be written as it was.
//!
//! With `UPDATE=1` the directory is written anew. That is right only for a new version of the format, beside the old one; a test
//! that fails without one has found a change of the format by accident.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use overtake_lane::{
    ApplyTo, Attempt, Attempts, Binding, Definition, Destination, Ending, ExchangeKind, ExchangeSettings,
    Extras, Fact, HashOn, HeaderValue, HeadersMatch, Identity, LeaseId, Located, Message, Ordinals, Original,
    Pattern, Policy, PolicyKind, PolicyValue, Priority, Property, QueueId, Report, Rewritten, RunId,
    RunRecord, Seq, Settings, Settled, State, Time, VhostId, VhostSettings, Work,
};
use overtake_store::record::{Content, Decoder, encode};
use overtake_store::{Lsn, MemoryDisk, Segment, check};

use crate::common;
use crate::common::spilled::{
    Pair, QUEUE, STORE_ID, deaths, name, pair, read_all, record, rich_pair, segments, write,
};
use crate::common::{append, commit, journal, open, shown};

/// Records of facts that are the same in every version of the program; each is a list of facts and contents.
type Record = Vec<(Fact, Option<Vec<u8>>)>;

fn run(run: u64, next: u32, holes: &[u32]) -> Box<RunRecord> {
    Box::new(RunRecord {
        ids: 300,
        deaths: 9,
        run: RunId(run),
        priority: Priority(-7),
        count: 400,
        bytes: 1 << 20,
        expires: Time(1_800_000_000_000),
        first: Seq(300),
        last: Seq(1 << 40),
        next,
        holes: holes.iter().copied().collect(),
        is_mixed: false,
    })
}

fn mixed(mut run: Box<RunRecord>) -> Box<RunRecord> {
    run.is_mixed = true;
    run
}

fn fixed_records() -> Vec<Record> {
    let (queue, seq) = (QueueId(7), Seq(300));
    let stored = |message: Message, content: &[u8]| (Fact::Stored { queue, message }, Some(content.to_vec()));
    let leased = State::Leased { lease: LeaseId(1 << 40 | 5), deadline: Time(1_700_000_030_000) };
    let delayed = State::Delayed { due: Time(1_700_000_060_000) };
    let mut states: Vec<Message> = (4..8).map(|seq| pair(seq, b"").0).collect();
    for (message, state) in states.iter_mut().zip([State::Ready, leased, delayed, State::Dead]) {
        message.state = state;
        message.original = Original::Missing;
    }
    let alone = |fact| vec![(fact, None)];
    vec![
        vec![stored(pair(1, b"").0, b"first"), stored(pair(2, b"").0, b"first"), stored(pair(3, b"").0, b"")],
        states.into_iter().map(|message| stored(message, b"state")).collect(),
        vec![stored(rich_pair(300, b"rich").0, &[0xfe; 300])],
        alone(Fact::Leased {
            queue,
            seq,
            lease: LeaseId(1 << 40 | 6),
            deadline: Time::NEVER,
            count: 1,
            work: None,
        }),
        alone(Fact::Leased {
            queue,
            seq,
            lease: LeaseId(1 << 40 | 7),
            deadline: Time::NEVER,
            count: 1,
            work: Some(Work {
                started: Time(1_700_000_000_000),
                ends: Time(1_700_000_090_000),
                is_cancelled: true,
            }),
        }),
        alone(Fact::PutBack { queue, seq, count: 1, due: Some(Time(1_700_000_090_000)), attempts: None }),
        alone(Fact::PutBack { queue, seq, count: 2, due: None, attempts: None }),
        alone(Fact::Reprioritised { queue, seq, priority: Priority(-7), original: Original::Number(-7) }),
        alone(Fact::Died { queue, seq, count: 3, deaths: deaths(), attempts: None }),
        alone(Fact::Replayed {
            queue,
            seq,
            priority: Priority(9),
            original: Original::Name,
            expires: Time::NEVER,
        }),
        alone(Fact::Moved {
            from: queue,
            seq,
            to: vec![
                Located { queue: QueueId(8), message: rich_pair(1, b"rich").0 },
                Located {
                    queue: QueueId(9),
                    message: Message { extras: rich_pair(1, b"rich").0.extras, ..pair(7, b"rich").0 },
                },
            ],
        }),
        [
            Settled::Acked,
            Settled::Dropped,
            Settled::Expired,
            Settled::Evicted,
            Settled::Removed,
            Settled::Replaced,
        ]
        .into_iter()
        .map(|how| (Fact::Settled { queue, seq, how }, None))
        .collect(),
        alone(Fact::RunStored { queue, run: run(1, 0, &[]) }),
        alone(Fact::RunRestated { queue, run: run(1, 0, &[]) }),
        alone(Fact::RunRestated { queue, run: mixed(run(1, 0, &[])) }),
        alone(Fact::RunStored { queue, run: mixed(run(1, 7, &[9])) }),
        alone(Fact::RunFetched { queue, run: RunId(1) }),
        alone(Fact::RunStored { queue, run: run(2, 3, &[5, 6, 200]) }),
        alone(Fact::RunStored { queue, run: run(3, 3, &(4..300).step_by(2).collect::<Vec<u32>>()) }),
        alone(Fact::RunsRewritten {
            queue,
            run: run(4, 0, &[]),
            of: vec![
                Rewritten { run: RunId(1), next: 300, holes: [302].into_iter().collect() },
                Rewritten { run: RunId(2), next: u32::MAX, holes: Ordinals::default() },
                Rewritten { run: RunId(3), next: 2, holes: (4..300).collect() },
            ],
        }),
        alone(Fact::RunSettled { queue, run: RunId(4), how: Settled::Removed }),
        // None of their segments is there.
        alone(Fact::RunSettled { queue, run: RunId(1), how: Settled::Removed }),
        alone(Fact::LanesChanged { queue }),
        alone(Fact::RunSettled { queue, run: RunId(2), how: Settled::Removed }),
        alone(Fact::RunSettled { queue, run: RunId(3), how: Settled::Removed }),
        alone(Fact::QueueDeleted { queue: QueueId(8) }),
        alone(Fact::ExchangeDeleted { vhost: VhostId::DEFAULT, name: "gone".into() }),
        alone(Fact::Bound { vhost: VhostId::DEFAULT, binding: binding() }),
        alone(Fact::Unbound { vhost: VhostId::DEFAULT, binding: binding() }),
        alone(Fact::Bound {
            vhost: VhostId::DEFAULT,
            binding: Box::new(Binding::new("orders", Destination::Exchange("more".into()), "#")),
        }),
        vec![
            (Fact::MetadataStored { key: "user/ada".into(), value: [0, 0xff].into() }, None),
            (Fact::MetadataStored { key: "empty".into(), value: [].into() }, None),
            (Fact::MetadataRemoved { key: "user/bob".into() }, None),
        ],
        vec![
            (Fact::Bound { vhost: VhostId(300), binding: binding() }, None),
            (Fact::Unbound { vhost: VhostId(300), binding: binding() }, None),
            (Fact::ExchangeDeleted { vhost: VhostId(300), name: "gone".into() }, None),
        ],
        vec![
            (policy_stored(VhostId::DEFAULT), None),
            (policy_stored(VhostId(300)), None),
            (policy_removed(VhostId(300)), None),
            (policy_removed(VhostId::DEFAULT), None),
        ],
        alone(Fact::VhostDeleted { vhost: VhostId(300) }),
        vec![stored(tried(pair(301, b"tried").0), b"tried")],
        alone(Fact::PutBack { queue, seq, count: 2, due: None, attempts: Some(attempts()) }),
        alone(Fact::Died { queue, seq, count: 3, deaths: deaths(), attempts: Some(attempts()) }),
        alone(Fact::Purged { queue, before: Seq(9_000), kept: vec![Seq(7), Seq(8), Seq(8_000)] }),
    ]
}

fn tried(message: Message) -> Message {
    let extras = Extras { attempts: Some(attempts()), ..Extras::default() };
    Message { extras: Some(Box::new(extras)), ..message }
}

fn attempts() -> Arc<Attempts> {
    let last = record().attempt().expect("something was said of it");
    let first =
        Attempt { ending: Ending::Failed, started: None, finished: Time(7), report: Report::default() };
    Arc::new(Attempts::new(vec![first, last], 0).expect("two"))
}

fn policy() -> Box<Policy> {
    let kept = [("ha-params".to_owned(), PolicyValue::List(vec![PolicyValue::Text("a".into())]))].into();
    Box::new(Policy {
        pattern: Pattern::new(r"^(?!amq\.)").expect("a pattern"),
        priority: -7,
        apply_to: ApplyTo::Queues,
        definition: Definition { max_length: Some(300), kept, ..Definition::default() },
    })
}

fn policy_stored(vhost: VhostId) -> Fact {
    Fact::PolicyStored { vhost, kind: PolicyKind::Operator, name: "few".into(), policy: policy() }
}

fn policy_removed(vhost: VhostId) -> Fact {
    Fact::PolicyRemoved { vhost, kind: PolicyKind::User, name: "gone".into() }
}

/// With every kind of value.
fn binding() -> Box<Binding> {
    let table = [("in".to_owned(), HeaderValue::Void)];
    let values = [
        HeaderValue::Bool(true),
        HeaderValue::Int(-7),
        HeaderValue::Text("eu".into()),
        HeaderValue::Void,
        HeaderValue::Float(1.5_f64.to_bits()),
        HeaderValue::Decimal { scale: 2, value: 1_205 },
        HeaderValue::Time(1_732_678_400),
        HeaderValue::Bytes(vec![0, 255]),
        HeaderValue::List(vec![HeaderValue::Bool(false)]),
        HeaderValue::Table(table.into()),
    ];
    Box::new(Binding {
        headers: (b'a'..).zip(values).map(|(name, value)| (char::from(name).to_string(), value)).collect(),
        matching: HeadersMatch::AnyWithX,
        arguments: b"any".to_vec(),
        ..Binding::new("orders", Destination::Queue("urgent".into()), "*.paid")
    })
}

/// Records with JSON in them: settings that come later are written, too, and read from old records as they are by default.
fn growing_records() -> Vec<Record> {
    let exchange = Box::new(ExchangeSettings {
        alternate: Some("rest".into()),
        hash_on: HashOn::Property(Property::MessageId),
        arguments: vec![1, 2, 3],
        ..ExchangeSettings::new(ExchangeKind::ConsistentHash)
    });
    let vhost = Box::new(VhostSettings {
        description: "Europe".into(),
        tags: vec!["prod".into()],
        max_queues: Some(300),
        max_connections: Some(0),
    });
    let queue = |name: &str, vhost, identity| Fact::QueueStored {
        queue: QUEUE,
        vhost,
        name: name.into(),
        // What it was where nothing was said of it.
        settings: Box::new(Settings { max_unacked: 10_000, ..Settings::default() }),
        identity,
        next_seq: Seq(301),
    };
    let alone = |fact| vec![(fact, None)];
    vec![
        alone(queue("urgent", VhostId::DEFAULT, Identity::default())),
        alone(queue(
            "reply",
            VhostId::DEFAULT,
            Identity { exclusive: true, auto_delete: true, arguments: [0xa5, 0].into(), durable: false },
        )),
        alone(Fact::ExchangeStored {
            vhost: VhostId::DEFAULT,
            name: "orders".into(),
            settings: exchange.clone(),
        }),
        vec![
            (Fact::VhostStored { vhost: VhostId(1), name: "eu".into(), settings: vhost }, None),
            (queue("urgent", VhostId(1), Identity::default()), None),
            (queue("reply", VhostId(1), Identity { durable: false, ..Identity::default() }), None),
            (Fact::ExchangeStored { vhost: VhostId(1), name: "orders".into(), settings: exchange }, None),
        ],
    ]
}

fn messages() -> Vec<Pair> {
    let plain = (1..=40).map(|n| pair(n, &vec![n as u8; 7 * n as usize]));
    let mut dead = rich_pair(1 << 40, b"dead");
    dead.0.state = State::Dead;
    let more = [rich_pair(1000, b"rich"), rich_pair(70_000, b""), pair(70_001, &[0x5a; 66_000]), dead];
    plain.chain(more).collect()
}

fn bytes_of(record: &Record) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut before: Option<&[u8]> = None;
    for (fact, content) in record {
        let content = content.as_deref();
        let written = match content {
            None => Content::None,
            Some(_) if before == content => Content::Same,
            Some(bytes) => Content::Bytes(bytes),
        };
        before = content.or(before);
        encode(fact, written, &mut bytes);
    }
    bytes
}

/// The store as this program writes it, and where the records begin that may grow.
fn written() -> (MemoryDisk, Lsn) {
    let disk = MemoryDisk::new(1);
    let mut opened = open(&disk);
    for records in fixed_records().chunks(5) {
        for record in records {
            append(&mut opened, &bytes_of(record));
        }
        commit(&mut opened);
    }
    let grows_from = opened.writer.tail();
    for record in growing_records() {
        append(&mut opened, &bytes_of(&record));
    }
    commit(&mut opened);
    write(&segments(&disk), &messages()).expect("a segment");
    disk.kill();
    (disk, grows_from)
}

fn directory() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "store", "format", "v1"].iter().collect()
}

fn write_anew(written: &MemoryDisk) {
    std::fs::create_dir_all(directory()).expect("a directory");
    for name in written.names() {
        let bytes = written.read(&name).expect("its file");
        std::fs::write(directory().join(name), bytes).expect("a file");
    }
}

/// The directory that is kept, written anew when that was asked for.
#[allow(clippy::disallowed_methods, reason = "UPDATE=1 writes the directory anew")]
fn kept() -> MemoryDisk {
    static UPDATE: Once = Once::new();
    let (written, _) = written();
    UPDATE.call_once(|| {
        if std::env::var("UPDATE").is_ok() {
            write_anew(&written);
        }
    });
    let disk = MemoryDisk::new(2);
    for name in written.names() {
        let path = directory().join(&name);
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        disk.put(&name, bytes);
    }
    disk
}

#[test]
fn a_journal_of_version_1_is_read() {
    let disk = kept();
    let report = check(&disk).expect("a store");
    assert!(report.is_clean() && report.notes.is_empty(), "{report:?}");
    let mut opened = open(&disk);
    assert_eq!((opened.store_id, opened.life), (STORE_ID, 2));
    let expected: Vec<Record> = fixed_records().into_iter().chain(growing_records()).collect();
    let found = shown(&mut opened);
    assert_eq!(found.len(), expected.len());
    for ((lsn, payload), record) in found.iter().zip(&expected) {
        let facts: Result<Record, _> = Decoder::new(payload)
            .map(|fact| fact.map(|(fact, content)| (fact, content.map(<[u8]>::to_vec))))
            .collect();
        assert_eq!(facts.as_ref(), Ok(record), "the record at {lsn}");
    }
}

#[test]
fn a_segment_of_version_1_is_read() {
    let segment = Segment::open(&kept(), 1, STORE_ID).expect("it is whole");
    let info = segment.info();
    assert_eq!((info.number, info.queue, info.count, info.bytes), (1, QUEUE, 44, 71_748));
    assert_eq!((info.first, info.last), (Seq(1), Seq(1 << 40)));
    assert_eq!(info.expires, Time(1_800_000_000_000 - (1 << 40)));
    assert_eq!(segment.blocks().map(|block| block.ordinals).collect::<Vec<_>>(), [0..42, 42..43, 43..44]);
    assert_eq!(read_all(&segment, 10).expect("no damage"), messages());
}

#[test]
fn version_1_is_written_as_it_was() {
    let ((written, grows_from), kept) = (written(), kept());
    let (_, offset) = common::place(grows_from);
    let same = |name: &str, to: usize| {
        let (now, then) = (written.read(name).expect("its file"), kept.read(name).expect("its file"));
        let differs = now[..to].iter().zip(&then[..to]).position(|(now, then)| now != then);
        assert_eq!(differs, None, "{name} is written differently from this byte on");
        (now.len(), then.len())
    };
    same(&journal(1), offset as usize);
    let (now, then) = same(&name(1), 4096);
    assert_eq!(now, then);
    same(&name(1), now);
}
