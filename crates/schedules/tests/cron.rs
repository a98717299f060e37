//! When lines come true: months, leap days, and clocks that change.

use overtake_lane::Time;
use overtake_schedules::{BadCron, Cron, rfc3339};

fn time(text: &str) -> Time {
    let timestamp: jiff::Timestamp = text.parse().expect("a moment");
    Time(u64::try_from(timestamp.as_millisecond()).expect("after 1970"))
}

/// The occurrences after a moment, in UTC.
#[track_caller]
fn check(line: &str, timezone: &str, after: &str, expect: &[&str]) {
    let cron = Cron::parse(line, timezone).expect("a line");
    let mut at = time(after);
    for expect in expect {
        at = cron.after(at).expect("another");
        assert_eq!(rfc3339(at), *expect, "{line} {timezone}");
    }
}

#[test]
fn a_line_is_read_in_its_time_zone() {
    check("30 9 * * *", "UTC", "2026-11-22T09:29:59.999Z", &["2026-11-22T09:30:00Z", "2026-11-23T09:30:00Z"]);
    check("30 9 * * *", "Asia/Kolkata", "2026-11-22T00:00:00Z", &["2026-11-22T04:00:00Z"]);
    check("30 9 * * *", "europe/berlin", "2026-11-22T00:00:00Z", &["2026-11-22T08:30:00Z"]);
    assert_eq!(Cron::parse("* * * * *", "europe/berlin").expect("a line").timezone(), "Europe/Berlin");
}

#[test]
fn an_occurrence_is_after_the_moment_and_not_at_it() {
    check("0 * * * *", "UTC", "2026-11-22T10:00:00Z", &["2026-11-22T11:00:00Z"]);
    check("0 * * * *", "UTC", "2026-11-22T10:00:00.500Z", &["2026-11-22T11:00:00Z"]);
    check("0 * * * *", "UTC", "2026-11-22T09:59:59.500Z", &["2026-11-22T10:00:00Z"]);
}

#[test]
fn months_end_when_they_do() {
    let lasts =
        ["2026-11-30T00:00:00Z", "2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z", "2027-02-28T00:00:00Z"];
    check("0 0 L * *", "UTC", "2026-11-22T00:00:00Z", &lasts);
    check(
        "0 0 31 * *",
        "UTC",
        "2026-11-22T00:00:00Z",
        &["2026-12-31T00:00:00Z", "2027-01-31T00:00:00Z", "2027-03-31T00:00:00Z"],
    );
    check("0 0 29 2 *", "UTC", "2026-11-22T00:00:00Z", &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"]);
    // 2100 is no leap year.
    check("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", &["2104-02-29T00:00:00Z"]);
    check("0 9 * * FRI#L", "UTC", "2026-11-22T00:00:00Z", &["2026-11-27T09:00:00Z", "2026-12-25T09:00:00Z"]);
    check("0 9 * * MON#1", "UTC", "2026-11-22T00:00:00Z", &["2026-12-07T09:00:00Z"]);
}

#[test]
fn a_day_of_the_month_or_of_the_week_will_do() {
    check(
        "0 0 1 * MON",
        "UTC",
        "2026-11-22T00:00:00Z",
        &["2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-01T00:00:00Z"],
    );
    check("0 0 1 * +MON", "UTC", "2026-11-22T00:00:00Z", &["2027-02-01T00:00:00Z"]);
    check("0 0 15W * *", "UTC", "2026-11-22T00:00:00Z", &["2026-12-15T00:00:00Z", "2027-01-15T00:00:00Z"]);
    check("0 0 15W 5 *", "UTC", "2026-11-22T00:00:00Z", &["2027-05-14T00:00:00Z"]);
}

/// On a machine that has no time zones those in the binary are used.
#[test]
fn time_zones_are_in_the_binary() {
    let bundled = jiff::tz::TimeZoneDatabase::bundled();
    for name in ["Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC"] {
        assert_eq!(bundled.get(name).expect("a time zone").iana_name(), Some(name));
    }
}

#[test]
fn words_stand_for_lines() {
    check("@hourly", "UTC", "2026-11-22T10:20:00Z", &["2026-11-22T11:00:00Z"]);
    check("@daily", "Europe/Berlin", "2026-11-22T10:20:00Z", &["2026-11-22T23:00:00Z"]);
    check("@weekly", "UTC", "2026-11-22T10:20:00Z", &["2026-11-29T00:00:00Z"]);
    check("@monthly", "UTC", "2026-11-22T10:20:00Z", &["2026-12-01T00:00:00Z"]);
    check("@yearly", "UTC", "2026-11-22T10:20:00Z", &["2027-01-01T00:00:00Z"]);
}

/// In Berlin 02:00 becomes 03:00 on 28 March 2027, at 01:00 UTC.
#[test]
fn a_time_that_does_not_exist_is_at_the_end_of_the_gap_and_a_step_leaves_it_out() {
    let days = ["2027-03-27T01:30:00Z", "2027-03-28T01:00:00Z", "2027-03-29T00:30:00Z"];
    check("30 2 * * *", "Europe/Berlin", "2027-03-26T12:00:00Z", &days);
    check(
        "*/30 * * * *",
        "Europe/Berlin",
        "2027-03-28T00:29:00Z",
        &["2027-03-28T00:30:00Z", "2027-03-28T01:00:00Z", "2027-03-28T01:30:00Z"],
    );
}

/// In Berlin 03:00 becomes 02:00 on 31 October 2027, at 01:00 UTC.
#[test]
fn a_time_that_exists_twice_is_the_first_of_them_and_a_step_takes_both() {
    let days = ["2027-10-30T00:30:00Z", "2027-10-31T00:30:00Z", "2027-11-01T01:30:00Z"];
    check("30 2 * * *", "Europe/Berlin", "2027-10-29T12:00:00Z", &days);
    check(
        "*/30 * * * *",
        "Europe/Berlin",
        "2027-10-30T23:59:00Z",
        &[
            "2027-10-31T00:00:00Z",
            "2027-10-31T00:30:00Z",
            "2027-10-31T01:00:00Z",
            "2027-10-31T01:30:00Z",
            "2027-10-31T02:00:00Z",
        ],
    );
}

#[test]
fn what_is_no_line_says_why() {
    let told = |line: &str, timezone: &str| {
        let bad = Cron::parse(line, timezone).expect_err("no line");
        assert!(!bad.hint().is_empty());
        bad.to_string()
    };
    assert_eq!(told("", "UTC"), "the cron line cannot be read: it has 0 fields instead of five");
    assert_eq!(told("0 0 * *", "UTC"), "the cron line cannot be read: it has 4 fields instead of five");
    assert_eq!(told("0 0 0 * * *", "UTC"), "the cron line cannot be read: it has 6 fields instead of five");
    assert!(told("61 * * * *", "UTC").starts_with("the cron line cannot be read: "));
    assert!(told("0 0 * * NOD", "UTC").starts_with("the cron line cannot be read: "));
    assert!(told("@reboot", "UTC").starts_with("the cron line cannot be read: "));
    assert!(told(&"1".repeat(1_000), "UTC").contains("longer than"));
    assert_eq!(told("* * * * *", "Europe/Berlinn"), "there is no time zone `Europe/Berlinn`");
    assert_eq!(told("* * * * *", ""), "there is no time zone ``");
    assert_eq!(Cron::parse("0 0 30 2 *", "UTC"), Err(BadCron::Never));
    assert_eq!(Cron::parse("0 0 31 4,6,9,11 *", "UTC"), Err(BadCron::Never));
}

/// Whatever is sent is refused or read; nothing else happens.
#[test]
fn rubbish_is_refused() {
    let words = [
        "*",
        "5",
        "60",
        "-",
        "/",
        ",",
        "#",
        "L",
        "W",
        "+",
        "?",
        "@",
        "MON",
        "jan",
        "ß",
        "0",
        "99999999999",
        " ",
        " ",
        " ",
        "*/7",
    ];
    let (mut seed, mut read) = (7_u64, 0);
    for _ in 0..20_000 {
        let mut line = String::new();
        for _ in 0..12 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            line.push_str(words[usize::try_from(seed >> 33).expect("31 bits") % words.len()]);
        }
        read += usize::from(Cron::parse(&line, "Europe/Berlin").is_ok());
    }
    assert!(read < 20_000);
}
