//! The journal, beside what the disk allows in the same run: 256-byte records, medians of rounds taken in turns so that a
//! noisy neighbour hits all rows alike.

use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use overtake_store::{Batch, Committer, FileReady, Journal, Opened, Options, RealDisk, Writer};

use crate::Plan;
use crate::overwrite::Overwrite;
use crate::report::Row;

const RECORD: [u8; 256] = [0x5a; 256];
const FILE_BYTES: u64 = 64 << 20;

pub(crate) fn run(plan: Plan) -> Vec<Row> {
    let dir = tempfile::tempdir().expect("a directory to write in");
    let rounds = if plan.long { 15 } else { 5 };
    let mut rows = Vec::new();
    for (size, commits) in [(1, 1_000), (16, 1_000), (256, 1_000), (1_024, 400)] {
        rows.extend(compare(dir.path(), size, commits, rounds));
    }
    for in_flight in [256, 1_024, 4_096] {
        let rates = (0..rounds).map(|_| pipelined(dir.path(), in_flight)).collect();
        rows.push(Row::of_rate(format!("pipelined, {in_flight} in flight"), "records", median(rates)));
    }
    rows
}

fn compare(dir: &Path, size: usize, commits: usize, rounds: usize) -> [Row; 3] {
    let (mut bare_rates, mut journal_rates, mut encode_rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let bytes = {
            let mut opened = open(dir);
            let (rate, bytes) = serial(&mut opened, size, commits);
            journal_rates.push(rate);
            bytes
        };
        bare_rates.push(bare(dir, size, commits, bytes));
        encode_rates.push(encoding(dir, size, commits));
    }
    // Round by round: a busy neighbour slows both halves of a round, but not all rounds alike.
    let ratio = median(journal_rates.iter().zip(&bare_rates).map(|(journal, bare)| journal / bare).collect());
    [
        Row::of_rate(format!("overwrite + fdatasync, {size} each"), "records", median(bare_rates))
            .reference(),
        Row::of_rate(format!("commits of {size}"), "records", median(journal_rates)).beside(ratio),
        Row::of_rate(format!("encoding alone, {size} each"), "records", median(encode_rates)),
    ]
}

/// The same bytes, one write and one `fdatasync` per commit, over a file written before.
fn bare(dir: &Path, size: usize, commits: usize, bytes: usize) -> f64 {
    let mut file = Overwrite::open(&dir.join("bare")).expect("a file");
    let block = vec![0x5a; bytes / commits];
    let start = Instant::now();
    for _ in 0..commits {
        file.write_and_sync(&block).expect("a write and a sync");
    }
    rate(size * commits, start.elapsed())
}

/// The journal, one commit after another, with the recycling of its files; and how many bytes of log that made.
fn serial(opened: &mut Opened<RealDisk>, size: usize, commits: usize) -> (f64, usize) {
    let Opened { writer, committer, .. } = opened;
    let first = writer.tail();
    let start = Instant::now();
    for _ in 0..commits {
        for _ in 0..size {
            writer.append(&[&RECORD]).expect("room");
        }
        let batch = writer.take_batch().expect("records");
        committer.commit(&batch).expect("a commit");
        writer.reuse(batch);
        recycle(writer, committer);
    }
    let elapsed = start.elapsed();
    (rate(size * commits, elapsed), (writer.tail().0 - first.0) as usize)
}

fn recycle(writer: &mut Writer, committer: &mut Committer<RealDisk>) {
    if writer.files() > 2 {
        writer.retire(writer.tail());
    }
    committer.retire().expect("a retired file");
    for _ in 0..writer.needs_files() {
        writer.file_ready(committer.prepare_file().expect("a prepared file"));
    }
}

/// The front half alone.
fn encoding(dir: &Path, size: usize, commits: usize) -> f64 {
    let mut opened = open(dir);
    let (writer, committer) = (&mut opened.writer, &mut opened.committer);
    let mut spent = Duration::ZERO;
    for _ in 0..commits {
        if writer.room(RECORD.len()) < size as u64 * Writer::cost(RECORD.len()) {
            writer.file_ready(committer.prepare_file().expect("a prepared file"));
        }
        let start = Instant::now();
        for _ in 0..size {
            writer.append(&[&RECORD]).expect("room");
        }
        let batch = writer.take_batch().expect("records");
        spent += start.elapsed();
        writer.reuse(batch);
    }
    rate(size * commits, spent)
}

enum News {
    Durable(Batch),
    Ready(FileReady),
}

enum Order {
    Commit(Batch),
    Prepare,
}

/// A loop that fills and a thread that commits, with at most so many records not yet durable.
fn pipelined(dir: &Path, in_flight: u64) -> f64 {
    const RECORDS: u64 = 800_000;
    let Opened { mut writer, committer, .. } = open(dir);
    let (orders, inbox) = mpsc::sync_channel(8);
    let (outbox, news) = mpsc::sync_channel(8);
    let thread = std::thread::spawn(move || commit_thread(committer, &inbox, &outbox));
    let start = Instant::now();
    let (mut appended, mut durable, mut is_committing, mut asked) = (0, 0, false, 0);
    while durable < RECORDS {
        while appended < RECORDS && appended - durable < in_flight && writer.append(&[&RECORD]).is_ok() {
            appended += 1;
        }
        if writer.files() > 2 {
            writer.retire(writer.tail());
        }
        while asked < writer.needs_files() {
            orders.send(Order::Prepare).expect("the thread lives");
            asked += 1;
        }
        if !is_committing && let Some(batch) = writer.take_batch() {
            orders.send(Order::Commit(batch)).expect("the thread lives");
            is_committing = true;
        }
        // Half of what may be in flight gathers while the other half is synced.
        match news.recv().expect("the thread lives") {
            News::Durable(batch) => {
                durable += batch.records();
                is_committing = false;
                writer.reuse(batch);
            }
            News::Ready(file) => {
                writer.file_ready(file);
                asked -= 1;
            }
        }
    }
    let elapsed = start.elapsed();
    drop(orders);
    thread.join().expect("the thread ends");
    rate(RECORDS as usize, elapsed)
}

fn commit_thread(
    mut committer: Committer<RealDisk>,
    inbox: &mpsc::Receiver<Order>,
    outbox: &mpsc::SyncSender<News>,
) {
    while let Ok(order) = inbox.recv() {
        let news = match order {
            Order::Commit(batch) => {
                committer.commit(&batch).expect("a commit");
                News::Durable(batch)
            }
            Order::Prepare => {
                committer.retire().expect("a retired file");
                News::Ready(committer.prepare_file().expect("a prepared file"))
            }
        };
        if outbox.send(news).is_err() {
            return;
        }
    }
}

/// A journal with warm spares, as one that has been in use for a while.
fn open(dir: &Path) -> Opened<RealDisk> {
    let disk = RealDisk::create(dir.join("journal")).expect("a directory");
    let options = Options { files_ahead: 2, segment_bytes: FILE_BYTES, ..Options::new(1) };
    let mut opened = Journal::open(disk, &options).expect("a journal");
    // What earlier rounds wrote is not needed.
    let (writer, committer) = (&mut opened.writer, &mut opened.committer);
    writer.retire(writer.tail());
    if let Some(batch) = writer.take_batch() {
        committer.commit(&batch).expect("a commit");
    }
    recycle(writer, committer);
    opened
}

fn rate(records: usize, elapsed: Duration) -> f64 {
    records as f64 / elapsed.as_secs_f64()
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
