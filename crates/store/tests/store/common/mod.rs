//! What the tests of a store share.
#![allow(unreachable_pub, reason = "only its test sees it")]

pub mod named;
pub mod spilled;

use overtake_store::{
    Disk, Journal, Lsn, MemoryDisk, OnDamage, Opened, Options, RealDisk, StoreError, Writer,
};

/// Length of the journal files in these tests, bytes.
pub const SEGMENT_BYTES: u64 = 64 << 10;
/// Length of a file's header, bytes.
pub const HEADER_LEN: u64 = 4096;

/// A record as it was written or read.
pub type Record = (Lsn, Vec<u8>);

/// Small files, one spare.
pub fn options() -> Options {
    Options { segment_bytes: SEGMENT_BYTES, spares_max: 1, ..Options::new(42) }
}

/// As [`options`], skipping damage.
pub fn skipping() -> Options {
    Options { on_damage: OnDamage::Skip, ..options() }
}

/// Opens a journal that has nothing wrong.
pub fn open<D: Disk>(disk: &D) -> Opened<D> {
    Journal::open(disk.clone(), &options()).expect("the journal opens")
}

/// Why a journal does not open.
pub fn refusal(disk: &MemoryDisk, options: &Options) -> StoreError {
    match Journal::open(disk.clone(), options) {
        Ok(_) => panic!("the journal should not open"),
        Err(error) => error,
    }
}

/// Appends a record, preparing files as they are needed.
pub fn append<D: Disk>(opened: &mut Opened<D>, payload: &[u8]) -> Record {
    if opened.writer.room(payload.len()) < Writer::cost(payload.len()) {
        opened.writer.file_ready(opened.committer.prepare_file().expect("a prepared file"));
    }
    (opened.writer.append(&[payload]).expect("room for a record"), payload.to_vec())
}

/// Commits what was appended.
pub fn commit<D: Disk>(opened: &mut Opened<D>) {
    if let Some(batch) = opened.writer.take_batch() {
        opened.committer.commit(&batch).expect("a commit");
    }
}

/// Every record a recovery shows.
pub fn shown<D: Disk>(opened: &mut Opened<D>) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some((lsn, payload)) = opened.recovery.next_record().expect("a readable journal") {
        records.push((lsn, payload.to_vec()));
    }
    records
}

/// The records as text, for those that are.
pub fn texts(records: &[Record]) -> String {
    records.iter().map(|(_, payload)| String::from_utf8_lossy(payload)).collect::<Vec<_>>().join(" ")
}

/// The number of a file and the offset in it, of an LSN, when all files are of [`SEGMENT_BYTES`].
pub fn place(lsn: Lsn) -> (u64, u64) {
    let capacity = SEGMENT_BYTES - HEADER_LEN;
    (lsn.0 / capacity + 1, lsn.0 % capacity + HEADER_LEN)
}

/// The name of a journal file.
pub fn journal(number: u64) -> String {
    format!("journal-{number:012}")
}

/// Changes a file as if it had always been so.
pub fn edit(disk: &MemoryDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = disk.read(name).expect("the file is there");
    change(&mut bytes);
    disk.put(name, bytes);
}

/// A directory of the operating system that is removed again.
pub struct TempDir(pub std::path::PathBuf);

impl TempDir {
    /// A new one; `name` tells the tests apart.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("overtake-store-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    /// The disk in it.
    pub fn disk(&self) -> RealDisk {
        RealDisk::create(&self.0).expect("a directory")
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
