//! Figures in little room.

use crate::table::number;

/// A count in at most six characters: `12,345`, then `123k`, `1.2M`.
pub(crate) fn count(count: u64) -> String {
    match count {
        0..100_000 => number(count),
        100_000..1_000_000 => format!("{}k", count / 1_000),
        _ => scaled(count, &["M", "G", "T", "P", "E"], 1_000_000, 1_000),
    }
}

/// A rate a second in at most five characters; `-` where none is known.
pub(crate) fn rate(rate: Option<f64>) -> String {
    match rate {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(rate) if rate < 9.95 => format!("{rate:.1}"),
        Some(rate) if rate < 9_999.5 => format!("{rate:.0}"),
        Some(rate) if rate < 999_500.0 => format!("{:.0}k", rate / 1e3),
        Some(rate) => scaled(rate as u64, &["M", "G", "T", "P", "E"], 1_000_000, 1_000),
    }
}

/// Bytes in at most seven characters: `512B`, `1.5KiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes < 1_024 {
        return format!("{bytes}B");
    }
    scaled(bytes, &["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"], 1_024, 1_024)
}

/// With a digit behind the point where there is one before it.
fn scaled(amount: u64, units: &[&str], mut unit: u64, step: u64) -> String {
    let mut at = 0;
    while at + 1 < units.len() && amount / unit >= step {
        unit *= step;
        at += 1;
    }
    let whole = amount / unit;
    let tenth = (u128::from(amount % unit) * 10 / u128::from(unit)) as u64;
    if whole < 10 { format!("{whole}.{tenth}{}", units[at]) } else { format!("{whole}{}", units[at]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_say_their_unit() {
        assert_eq!(
            [0, 999, 99_999, 123_456, 1_250_000, 45_000_000, 2_000_000_000, u64::MAX].map(count),
            ["0", "999", "99,999", "123k", "1.2M", "45M", "2.0G", "18E"]
        );
        assert_eq!(
            [None, Some(0.0), Some(0.04), Some(1.25), Some(9.97), Some(1234.4), Some(12_345.0), Some(2.5e6)]
                .map(rate),
            ["-", "0", "0.0", "1.2", "10", "1234", "12k", "2.5M"]
        );
        assert_eq!(
            [0, 1_023, 1_536, 1 << 20, 40 << 30, u64::MAX].map(bytes),
            ["0B", "1023B", "1.5KiB", "1.0MiB", "40GiB", "15EiB"]
        );
    }
}
