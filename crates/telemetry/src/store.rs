//! The store of an engine: its journal, its segments, its disk and its memory.

use overtake_engine::{BytesInUse, Distribution, Health, SegmentWork, ServerWork};

use crate::family::Kind::{self, Counter, Gauge, UpDownCounter};
use crate::family::{Family, Histogram, Value, labels};
use crate::nodes;

/// Its families. `answers`: whether the engine answered when it was asked for its queues.
pub(crate) fn families(health: &Health, answers: bool) -> Vec<Family> {
    let flag = |is: bool| u64::from(is);
    let up = answers && health.down.is_none();
    let mut all = vec![
        Family::new("overtake.engine.up", Gauge, "", "Whether the engine serves.").of(flag(up)),
        Family::new("overtake.engine.full", Gauge, "", "Whether publishes are refused for lack of room.")
            .of(flag(health.full.is_some())),
    ];
    if let Some(disk) = health.disk {
        let bytes = |name, help| Family::new(name, Gauge, "By", help);
        let low = "Below so many free bytes publishes are refused; 0: never.";
        let high = "Above so many free bytes publishes are taken again.";
        let is_low = "Whether publishes are refused because the disk is below its low watermark.";
        all.extend([
            bytes("overtake.disk.free", "Bytes free on the disk of the store.").of(disk.free),
            bytes("overtake.disk.low_watermark", low).of(disk.low),
            bytes("overtake.disk.high_watermark", high).of(disk.high),
            Family::new("overtake.disk.low", Gauge, "", is_low).of(flag(disk.is_low)),
        ]);
    }
    all.extend(memory(health));
    all.extend(damage(health));
    all.extend(journal(health));
    all.extend(segments(health));
    all.extend(health.servers.iter().flat_map(servers));
    if health.servers.is_some() {
        all.extend(nodes::families(&health.nodes));
    }
    all
}

fn servers(work: &ServerWork) -> [Family; 11] {
    let count = |name, unit, help, number: u64| Family::new(name, Counter, unit, help).of(number);
    let doubt = "Calls of which it was not known whether they were done, each time.";
    let inversion = "For how long the most urgent message known elsewhere had waited when one that is less urgent was leased.";
    [
        count("overtake.servers.calls", "{call}", "Calls written to servers.", work.calls),
        count(
            "overtake.servers.retries",
            "{call}",
            "Calls that were written again, or waited to be.",
            work.retries,
        ),
        count("overtake.servers.moves", "{call}", "Answers that named another server.", work.moves),
        count("overtake.servers.in_doubt", "{call}", doubt, work.in_doubt),
        count(
            "overtake.servers.replica_shortfalls",
            "{write}",
            "Writes that too few replicas acknowledged in time.",
            work.wait_shortfalls,
        ),
        count(
            "overtake.servers.connections_opened",
            "{connection}",
            "Connections made to servers.",
            work.connections,
        ),
        count(
            "overtake.servers.definitions_went_back",
            "{time}",
            "Times that definitions on the servers were found to be older than they had been, or others.",
            work.definitions_went_back,
        ),
        Family::new(
            "overtake.servers.orphaned_queues",
            Gauge,
            "{queue}",
            "Queues on the servers that are not defined, when they were looked for last.",
        )
        .of(work.orphans),
        count("overtake.servers.leased_messages", "{message}", "Messages leased from places.", work.leased),
        count(
            "overtake.servers.missed",
            "{claim}",
            "Places asked for what somebody else had taken by then.",
            work.missed,
        ),
        histogram(
            Family::new("overtake.servers.inversion", Kind::Histogram, "s", inversion),
            &work.inversions_us,
            1_000_000,
        ),
    ]
}

fn memory(health: &Health) -> Vec<Family> {
    let memory = health.memory;
    let limit = "Bytes of memory that waiting messages may take: beyond them the least urgent ones wait in segments only.";
    let mut all = Vec::from(messages(health));
    all.push(Family::new("overtake.memory_limit", UpDownCounter, "By", limit).of(memory.limit));
    all.extend(bounded(
        ["overtake.inbox", "overtake.inbox_limit", "overtake.inbox_waits"],
        memory.inbox,
        "Bytes of published messages that wait in line to be stored.",
        "How often a publisher waited because they were too many.",
    ));
    all.extend(bounded(
        ["overtake.pushed", "overtake.pushed_limit", "overtake.pushed_waits"],
        memory.pushed,
        "Bytes of messages that were pushed to connections which have not taken them yet.",
        "How often a consumer was leased nothing more until its connection had taken some.",
    ));
    all
}

/// The families of memory of one kind that is bounded.
fn bounded(
    names: [&'static str; 3],
    of: BytesInUse,
    bytes: &'static str,
    waits: &'static str,
) -> [Family; 3] {
    let limit = "The most bytes there may be of them, about; 0: no limit.";
    [
        Family::new(names[0], UpDownCounter, "By", bytes).of(of.bytes),
        Family::new(names[1], UpDownCounter, "By", limit).of(of.limit),
        Family::new(names[2], Counter, "{wait}", waits).of(of.waits),
    ]
}

fn messages(health: &Health) -> [Family; 4] {
    let (memory, sum) = (health.memory, UpDownCounter);
    [
        Family::new("overtake.memory", sum, "By", "Bytes of memory that messages take, about.")
            .of(memory.bytes),
        Family::new("overtake.spilled_messages", sum, "{message}", "Messages that wait in segments only.")
            .of(memory.spilled),
        Family::new("overtake.segments", sum, "{segment}", "Segments that hold messages.")
            .of(memory.segments),
        Family::new("overtake.segment", sum, "By", "Bytes of segments on disk.").of(memory.segment_bytes),
    ]
}

fn damage(health: &Health) -> [Family; 2] {
    let blocks = "Damaged blocks of segments that were found since the store was opened.";
    let lost = "Messages lost with damaged blocks of segments since the store was opened.";
    [
        Family::new("overtake.damaged_blocks", UpDownCounter, "{block}", blocks).of(health.damage.blocks),
        Family::new("overtake.lost_messages", Counter, "{message}", lost).of(health.damage.lost_messages),
    ]
}

fn journal(health: &Health) -> [Family; 7] {
    let work = &health.work;
    let carried = "Messages written once more at the end of the journal, so that its oldest files could go.";
    [
        Family::new("overtake.journal", UpDownCounter, "By", "Bytes of journal on disk.")
            .of(health.journal_bytes),
        Family::new("overtake.journal.written", Counter, "By", "Bytes of commits written to the journal.")
            .of(work.written_bytes),
        Family::new("overtake.journal.syncs", Counter, "{sync}", "Syncs of the journal since it was opened.")
            .of(work.commits_us.count),
        Family::new(
            "overtake.journal.unsynced_records",
            UpDownCounter,
            "{record}",
            "Records waiting to be durable.",
        )
        .of(health.unsynced),
        Family::new("overtake.journal.carried_messages", Counter, "{message}", carried)
            .of(work.carried_messages),
        histogram(
            Family::new(
                "overtake.journal.sync",
                Kind::Histogram,
                "s",
                "How long commits took: one write and its sync.",
            ),
            &work.commits_us,
            1_000_000,
        ),
        histogram(
            Family::new(
                "overtake.journal.commit_records",
                Kind::Histogram,
                "{record}",
                "Records of each commit.",
            ),
            &work.commit_records,
            1,
        ),
    ]
}

fn histogram(family: Family, of: &Distribution, per_unit: u64) -> Family {
    let histogram = Histogram::scaled(&of.buckets, of.count, of.sum, per_unit);
    family.with(labels([]), Value::Histogram(Box::new(histogram)))
}

fn segments(health: &Health) -> [Family; 4] {
    let work = &health.work;
    let by_reason = |name, unit, help, number: fn(&SegmentWork) -> u64| {
        Family::new(name, Counter, unit, help)
            .with(labels([("reason", "spill")]), Value::Whole(number(&work.spilled)))
            .with(labels([("reason", "rewrite")]), Value::Whole(number(&work.rewritten)))
    };
    let written = "Segments written: of messages that left memory, or in place of sparse ones.";
    [
        by_reason("overtake.segments.written", "{segment}", written, |work| work.segments),
        by_reason("overtake.segments.written_messages", "{message}", "Messages in them.", |work| {
            work.messages
        }),
        by_reason("overtake.segments.written_bytes", "By", "Bytes of them.", |work| work.bytes),
        Family::new("overtake.segments.removed", Counter, "{segment}", "Segments removed.")
            .of(work.removed_segments),
    ]
}
