//! What stands in the way of opening.

use overtake_engine::core::OpenError;
use overtake_engine::{Engine, Failure, LocalEngine, Options};
use overtake_lane::Settings;
use overtake_store::{FORMAT_VERSION, MemoryDisk, StoreError};

use crate::support::{clock, open_dir, open_disk, options};

fn store_error(opened: Result<LocalEngine, OpenError>) -> StoreError {
    match opened.map(drop).expect_err("it does not open") {
        OpenError::Store(error) => error,
        error => panic!("the store refuses: {error}"),
    }
}

#[test]
fn a_directory_has_one_engine_at_a_time() {
    let (dir, clock) = (tempfile::tempdir().expect("a directory"), clock());
    let first = open_dir(dir.path(), &clock).expect("the first opens");
    assert!(matches!(store_error(open_dir(dir.path(), &clock)), StoreError::Locked));
    first.close();
    open_dir(dir.path(), &clock).expect("the next opens once the first is closed");
}

#[test]
fn a_file_is_no_directory() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let error = store_error(open_dir(file.path(), &clock()));
    let StoreError::Io { file: named, .. } = &error else { panic!("{error}") };
    assert!(named.contains(&*file.path().to_string_lossy()), "the message names the path: {error}");
}

#[test]
fn files_of_a_length_that_cannot_be_are_refused() {
    for segment_bytes in [0, 1, 65_535, 65_537, 2 << 30] {
        let opened = LocalEngine::open_on(MemoryDisk::new(1), options(segment_bytes), clock());
        assert!(matches!(store_error(opened), StoreError::BadSegmentBytes { .. }), "{segment_bytes}");
    }
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    open_disk(&disk, &clock).expect("opens").close();
    let name = disk.names().into_iter().find(|name| name.starts_with("journal-")).expect("a journal file");
    let mut bytes = disk.read(&name).expect("its bytes");
    for header in [0, 2048] {
        bytes[header + 8..header + 12].copy_from_slice(&(FORMAT_VERSION + 1).to_le_bytes());
        let sum = crc32c(&bytes[header..header + 60]);
        bytes[header + 60..header + 64].copy_from_slice(&sum.to_le_bytes());
    }
    disk.put(&name, bytes.clone());
    let error = store_error(open_disk(&disk, &clock));
    assert!(matches!(error, StoreError::Newer { found, known, .. } if found == known + 1), "{error}");
    assert!(error.to_string().contains(&name), "{error}");
    assert_eq!(disk.read(&name), Some(bytes));
}

/// Bit by bit: it is needed once.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (0x82f6_3b78 & 0_u32.wrapping_sub(sum & 1)))
    })
}

#[tokio::test]
async fn an_engine_tells_what_it_recovered() {
    let (disk, clock) = (MemoryDisk::new(1), clock());
    let engine = open_disk(&disk, &clock).expect("opens");
    assert_eq!((engine.recovered().life, engine.recovered().messages), (1, 0));
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(vec![crate::support::message("a", 5)]).await.expect("published");
    engine.close();
    let recovered = open_disk(&disk, &clock).expect("opens again").recovered().clone();
    assert_eq!((recovered.life, recovered.queues, recovered.messages, recovered.left_over), (2, 1, 1, 0));
}

#[tokio::test]
async fn the_largest_message_is_what_the_options_say() {
    let options = Options { max_message_bytes: 100, ..options(1 << 20) };
    let engine = LocalEngine::open_on(MemoryDisk::new(1), options, clock()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.publish(vec![crate::support::message(&"x".repeat(100), 5)]).await.expect("published");
    let refused = engine.publish(vec![crate::support::message(&"x".repeat(101), 5)]).await;
    let Err(Failure::Refused(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.refusal, overtake_lane::Refusal::MessageTooLarge);
}

#[tokio::test]
async fn a_body_may_have_a_quarter_of_a_journal_file_to_the_byte() {
    for asked in [0, 16 << 10, 1 << 20] {
        let options = Options { max_message_bytes: asked, ..options(64 << 10) };
        let engine = LocalEngine::open_on(MemoryDisk::new(1), options, clock()).expect("opens");
        engine.declare_queue("q", Settings::default()).await.expect("declared");
        let publish = async |len| engine.publish(vec![crate::support::message(&"x".repeat(len), 5)]).await;
        publish(16 << 10).await.expect("it fits");
        let Err(Failure::Refused(refused)) = publish((16 << 10) + 1).await else { panic!("{asked}") };
        assert_eq!(refused.refusal, overtake_lane::Refusal::MessageTooLarge);
    }
}

#[tokio::test]
async fn a_default_time_to_live_holds_where_nobody_says_another() {
    let (clock, options) = (clock(), Options { default_ttl_ms: 1_000, ..options(1 << 20) });
    let engine = LocalEngine::open_on(MemoryDisk::new(1), options, clock.clone()).expect("opens");
    engine.declare_queue("q", Settings::default()).await.expect("declared");
    engine.declare_queue("r", Settings { ttl_ms: 60_000, ..Settings::default() }).await.expect("declared");
    for text in ["a:5", "b:5,in=r"] {
        let message = overtake_engine::conformance::words::message("q", text);
        engine.publish(vec![message]).await.expect("published");
    }
    clock.advance(1_000);
    let leased = async |queue| engine.lease(crate::support::pull(queue, 9)).await.expect("leased").len();
    assert_eq!((leased("q").await, leased("r").await), (0, 1));
}
