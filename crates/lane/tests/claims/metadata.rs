//! Small named values that last: set and removed together, and nothing else comes of them.

use expect_test::expect;
use overtake_lane::{
    Broker, Command, Fact, METADATA_BYTES_MAX, METADATA_ENTRY_COST, MetadataEntry, Options, Refusal, Reply,
    Step, Time,
};

use crate::story::{check, check_with};

#[test]
fn values_are_seen_by_key_and_survive_a_restart() {
    check(
        "",
        "set b=2 a=1 c= · metadata · set -a b=3 · restart · metadata · declare r · metadata",
        expect!["a=1 b=2 c= · b=3 c= · made · b=3 c="],
    );
}

#[test]
fn only_what_changes_is_said() {
    check(
        "",
        "set? a=1 b=2 · set? a=1 b=2 -c · set? a=1 b=3 -c -b · set? a=2 a=1 · set? · metadata",
        expect!["2 facts · 0 facts · 2 facts · 2 facts · 0 facts · a=1"],
    );
}

#[test]
fn what_is_said_last_of_a_key_holds() {
    check("", "set a=1 -a b=1 b=2 -c c=3 · metadata", expect!["b=2 c=3"]);
}

#[test]
fn a_key_has_a_length_and_no_control_characters() {
    check(
        "",
        "set a=1 =2 · set -*1025 · set *1024=1 · set? -*1024 a\u{1}=1 · set ü/ß=1 -*1024 · metadata",
        expect!["no: metadata-invalid · no: metadata-invalid · no: metadata-invalid · 0 facts · ü/ß=1"],
    );
}

#[test]
fn a_value_has_a_length() {
    check("", "set a=1 b=*65537 · set b=*65536 · metadata", expect!["no: metadata-invalid · b=*65536"]);
}

#[test]
fn a_store_of_short_records_takes_less_at_once() {
    let options = Options { metadata_step_max: 2 * METADATA_ENTRY_COST + 10, ..Options::default() };
    check_with(
        options,
        "",
        "set a=*4 b=*4 · set a=*5 b=*4 · set a=1 b=2 c=3 · set -a -b · metadata",
        expect!["no: metadata-invalid · no: metadata-invalid · "],
    );
}

/// Sixteen MiB, what each costs beside its bytes among them; what makes it less is always taken.
#[test]
fn there_is_only_so_much_metadata() {
    let (mut broker, mut step) = (Broker::new(Options::default()), Step::default());
    let without = broker.topology_len() as u64;
    let value = vec![0; 65_536 - METADATA_ENTRY_COST as usize - 3];
    let one = |n: u64, value: &[u8]| MetadataEntry::set(&format!("{n:03}"), value);
    let mut set = |entries| broker.apply(Time(1), Command::SetMetadata { entries }, &mut step);
    assert_eq!(set((0..256).map(|n| one(n, &value)).collect()), Ok(Reply::Done));
    assert_eq!(set(vec![MetadataEntry::set("x", b"")]), Err(Refusal::MetadataFull));
    assert_eq!(set(vec![one(1, b""), one(1, &[&value[..], b"1"].concat())]), Err(Refusal::MetadataFull));
    assert_eq!(set(vec![one(1, b""), MetadataEntry::set("x", b"")]), Ok(Reply::Done));
    assert_eq!(set(vec![one(2, b"")]), Ok(Reply::Done));
    let size = broker.metadata_size();
    assert_eq!((size.entries, size.cost()), (257, METADATA_BYTES_MAX - 2 * value.len() as u64 + 65));
    assert_eq!(broker.topology_len() as u64 - without, size.cost().div_ceil(1_024), "it counts by its bytes");
}

/// The record that set it is given back, that it is removed is not.
#[test]
fn what_is_not_there_may_be_removed_again() {
    let mut broker = Broker::new(Options::default());
    let gone = Fact::MetadataRemoved { key: "a".into() };
    assert_eq!(broker.fold(gone, &mut Step::default()), Ok(()));
    let wrong = Fact::MetadataStored { key: "".into(), value: [].into() };
    assert!(broker.fold(wrong, &mut Step::default()).is_err(), "nobody could have set it");
    assert_eq!(broker.metadata().count(), 0);
}
