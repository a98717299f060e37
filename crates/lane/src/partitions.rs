//! In how many places the messages of a queue are kept, and which goes where.
//!
//! | `mode` | places | a message goes to |
//! |---|---|---|
//! | `none` | 1 | the one there is |
//! | `hash` | `count` | any of them: by its id where it has one, so that it is found when it comes again, else in turn |
//! | `bands` | one for each of `bands`, and `count` for all below | that of its priority |
//! | `key` | `count` | that of its key, or any where it has none |
//!
//! The heads of all places meet in one [`Merger`](crate::Merger), so the order is that of one queue whatever is said here. What
//! differs is how much a queue takes on several servers, and that `key` keeps the messages of a key one after the other.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::priority::{Given, Priority, Scheme};
use crate::settings::{BadSetting, LastValue, Settings, bad};
use crate::topology::hash_of;

/// Most places of one queue.
pub const PLACES_MAX: u16 = 4_096;
/// Most of [`Partitions::bands`].
pub const PARTITION_BANDS_MAX: usize = 16;

/// Where hot and warm begin of priorities from 0 to 9, unless something else is said: 7 to 9, 4 to 6, 0 to 3.
const TEN_LEVEL_BANDS: [i64; 2] = [7, 4];

/// In how many places the messages of a queue are kept, and which goes where.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Partitions {
    /// Which message goes where.
    pub mode: PartitionMode,
    /// With `hash` and `key` how many places there are, 2 to 4,096; with `bands` over how many the last band is spread, 0 or 1: it is not.
    #[serde(skip_serializing_if = "is_zero")]
    pub count: u16,
    /// With `bands`: the least urgent priority of each band but the last, the most urgent first, in the words of the scheme. None: 7 and 4, where
    /// priorities go from 0 to 9.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bands: Vec<Given>,
}

/// Which message goes where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartitionMode {
    /// All of them to one place.
    #[default]
    None,
    /// Spread evenly: one with an id by its hash, else in turn.
    Hash,
    /// By priority: the urgent ones have places of their own.
    Bands,
    /// By the hash of the key: what has one key goes to one place, and one after the other.
    Key,
}

/// By what a message is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traits<'m> {
    /// Its key.
    pub key: Option<&'m str>,
    /// The id its publisher gave it.
    pub id: Option<&'m str>,
    /// Its producer, and the number it has there.
    pub origin: Option<(&'m str, u64)>,
}

impl Partitions {
    /// How many places there are, 1 at least.
    #[must_use]
    pub fn places(&self) -> u16 {
        match self.mode {
            PartitionMode::None => 1,
            PartitionMode::Hash | PartitionMode::Key => self.count.max(1),
            PartitionMode::Bands => self.above().saturating_add(self.count.max(1)),
        }
    }

    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// How many bands there are above the last.
    fn above(&self) -> u16 {
        let said = if self.bands.is_empty() { TEN_LEVEL_BANDS.len() } else { self.bands.len() };
        u16::try_from(said).unwrap_or(u16::MAX)
    }

    /// The least priority of each band but the last, the most urgent first.
    ///
    /// # Errors
    /// The first that the scheme does not know.
    fn thresholds(&self, scheme: Scheme) -> Result<Vec<Priority>, BadSetting> {
        let default = TEN_LEVEL_BANDS.map(Given::Number);
        let said = if self.bands.is_empty() { &default[..] } else { &self.bands };
        let map = |given: &Given| {
            scheme.map(given).map_err(|why| bad("partitions.bands", format!("{why}: {}", why.hint())))
        };
        said.iter().map(map).collect()
    }
}

impl Settings {
    /// The number of the band that a priority is in: 0 is the hottest. 0 also where there are no bands.
    #[must_use]
    pub fn band_of(&self, priority: Priority) -> usize {
        if self.partitions.mode != PartitionMode::Bands {
            return 0;
        }
        let thresholds = self.partitions.thresholds(self.scheme).unwrap_or_default();
        thresholds.iter().position(|from| priority >= *from).unwrap_or(thresholds.len())
    }

    /// The places, counted from 0, that a message of this priority may go to.
    #[must_use]
    pub fn places_of(&self, priority: Priority) -> Range<u16> {
        let Partitions { mode, .. } = self.partitions;
        let (above, places) = (self.partitions.above(), self.partitions.places());
        match (mode, u16::try_from(self.band_of(priority))) {
            (PartitionMode::Bands, Ok(band)) if band < above => band..band + 1,
            (PartitionMode::Bands, _) => above..places,
            (PartitionMode::None | PartitionMode::Hash | PartitionMode::Key, _) => 0..places,
        }
    }

    /// The place of a message: of those it [may go to](Self::places_of) the one that its key, its producer's number or its id says, so that what belongs together and what comes
    /// again is found there; else the one whose `turn` it is. The same for the same in every version.
    #[must_use]
    pub fn place_of(&self, priority: Priority, traits: Traits<'_>, turn: u64) -> u16 {
        /// Numbers of a producer that stay together, as places remember them.
        const NUMBERS: u64 = 4_096;
        let places = self.places_of(priority);
        let count = u64::from(places.end - places.start);
        let by_key = self.partitions.mode == PartitionMode::Key
            || self.group_limit > 0
            || self.key_rate_limit.is_some();
        let choice = match traits {
            Traits { key: Some(key), .. } if by_key => hash_of(key.as_bytes()),
            Traits { origin: Some((producer, number)), .. } => {
                hash_of(producer.as_bytes()).wrapping_add(number / NUMBERS)
            }
            Traits { id: Some(id), .. } => hash_of(id.as_bytes()),
            Traits { .. } => turn,
        };
        places.start + (choice % count) as u16
    }

    /// How many places share with this one what the queue may hold and how fast it may go: all, or those of its band.
    #[must_use]
    pub fn sharing(&self, place: u16) -> u16 {
        let Partitions { mode, .. } = self.partitions;
        let above = if mode == PartitionMode::Bands { self.partitions.above() } else { 0 };
        if place < above { 1 } else { self.partitions.places() - above }
    }

    /// Most messages of one key leased at once; 0: no limit. What [`group_limit`](Self::group_limit) says, and 1 where it says nothing and places go by the key.
    #[must_use]
    pub fn out_per_key(&self) -> u32 {
        let is_by_key = self.partitions.mode == PartitionMode::Key;
        if is_by_key { self.group_limit.max(1) } else { self.group_limit }
    }

    pub(crate) fn check_partitions(&self) -> Result<(), BadSetting> {
        let Partitions { mode, count, ref bands } = self.partitions;
        if mode != PartitionMode::Bands && !bands.is_empty() {
            return Err(bad(
                "partitions.bands",
                "goes with `mode` \"bands\" only: set that, or leave it out",
            ));
        }
        match mode {
            PartitionMode::None if count > 1 => {
                Err(bad("partitions.count", "needs a `mode`: \"hash\", \"bands\" or \"key\""))
            }
            PartitionMode::None => Ok(()),
            PartitionMode::Hash | PartitionMode::Key if !(2..=PLACES_MAX).contains(&count) => {
                Err(bad("partitions.count", format!("must be 2 to {PLACES_MAX}")))
            }
            PartitionMode::Hash => self.check_last_value(),
            PartitionMode::Bands => {
                self.check_bands()?;
                self.check_last_value()
            }
            PartitionMode::Key if self.group_limit > 1 => Err(bad(
                "group_limit",
                "is 1 where `partitions` go by the key: leave it out, or use `mode` \"hash\"",
            )),
            PartitionMode::Key if self.last_value == Some(LastValue::One) => self.check_last_value(),
            PartitionMode::Key => Ok(()),
        }
    }

    fn check_bands(&self) -> Result<(), BadSetting> {
        let Partitions { bands, .. } = &self.partitions;
        let is_ten_level = matches!(self.scheme, Scheme::TenLevel | Scheme::Max(9));
        if bands.is_empty() && !is_ten_level {
            let why = "must be said where priorities do not go from 0 to 9: the least priority of each band but the last, \
                such as [\"high\", \"normal\"]";
            return Err(bad("partitions.bands", why));
        }
        if bands.len() > PARTITION_BANDS_MAX {
            return Err(bad("partitions.bands", format!("must be at most {PARTITION_BANDS_MAX}")));
        }
        if bands.contains(&Given::Missing) {
            return Err(bad("partitions.bands", "must be priorities"));
        }
        let thresholds = self.partitions.thresholds(self.scheme)?;
        if !thresholds.is_sorted_by(|above, below| above > below) {
            return Err(bad("partitions.bands", "go from the most urgent to the least"));
        }
        if self.partitions.places() > PLACES_MAX {
            return Err(bad("partitions.count", format!("must leave at most {PLACES_MAX} places in all")));
        }
        Ok(())
    }

    /// What is replaced by its successor is in the same place.
    fn check_last_value(&self) -> Result<(), BadSetting> {
        let why = match self.last_value {
            None => return Ok(()),
            Some(LastValue::Key) => {
                "\"key\" needs all messages of a key in one place: use `partitions.mode` \"key\", or \"none\""
            }
            Some(LastValue::One) => "\"one\" needs all messages in one place: use `partitions.mode` \"none\"",
        };
        Err(bad("last_value", why))
    }
}

fn is_zero(count: &u16) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(json: &str) -> Settings {
        serde_json::from_str(&format!("{{{json}}}")).expect(json)
    }

    fn refused(json: &str, expect: &str) {
        let seen = settings(json).validate().expect_err(json).to_string();
        assert!(seen.contains(expect), "{json}: {seen}");
    }

    /// The places that priorities go to, and how many there are.
    fn places(json: &str, priorities: [i32; 4]) -> String {
        let settings = settings(json);
        settings.validate().expect(json);
        let of = |priority| format!("{:?}", settings.places_of(Priority(priority)));
        format!("{} of {}", priorities.map(of).join(" "), settings.partitions.places())
    }

    #[test]
    fn one_place_unless_something_is_said() {
        assert_eq!(places("", [9, 5, 0, -1]), "0..1 0..1 0..1 0..1 of 1");
        assert_eq!(places(r#""partitions":{"count":1}"#, [9, 5, 0, -1]), "0..1 0..1 0..1 0..1 of 1");
        assert_eq!(places(r#""partitions":{"mode":"none"}"#, [9, 5, 0, -1]), "0..1 0..1 0..1 0..1 of 1");
    }

    #[test]
    fn what_goes_by_hash_or_by_key_may_go_anywhere_whatever_its_priority() {
        assert_eq!(
            places(r#""partitions":{"mode":"hash","count":16}"#, [9, 5, 0, -1]),
            "0..16 0..16 0..16 0..16 of 16"
        );
        assert_eq!(
            places(r#""partitions":{"mode":"key","count":4096}"#, [9, 5, 0, -1]),
            "0..4096 0..4096 0..4096 0..4096 of 4096"
        );
    }

    #[test]
    fn hot_warm_and_cold_are_thirds_of_ten_levels_and_the_cold_ones_may_be_spread() {
        assert_eq!(places(r#""partitions":{"mode":"bands"}"#, [9, 7, 4, 3]), "0..1 0..1 1..2 2..3 of 3");
        assert_eq!(
            places(r#""partitions":{"mode":"bands","count":8}"#, [7, 6, 3, 0]),
            "0..1 1..2 2..10 2..10 of 10"
        );
        let max = r#""scheme":"max-9","partitions":{"mode":"bands"}"#;
        assert_eq!(places(max, [9, 6, 4, 3]), "0..1 1..2 1..2 2..3 of 3");
    }

    #[test]
    fn bands_are_said_in_the_words_of_the_scheme() {
        let named = r#""scheme":"named","partitions":{"mode":"bands","bands":["high"],"count":2}"#;
        assert_eq!(places(named, [4, 3, 2, 0]), "0..1 0..1 1..3 1..3 of 3");
        let route = r#""scheme":"route","partitions":{"mode":"bands","bands":[1,4]}"#;
        assert_eq!(places(route, [10, 9, 6, 0]), "0..1 0..1 1..2 2..3 of 3");
        let settings = settings(named);
        assert_eq!([4, 3, 2, 0].map(|level| settings.band_of(Priority(level))), [0, 0, 1, 1]);
    }

    #[test]
    fn what_cannot_be_in_several_places_is_refused_and_says_what_to_do() {
        refused(r#""partitions":{"count":2}"#, "`partitions.count` needs a `mode`");
        refused(r#""partitions":{"mode":"hash"}"#, "`partitions.count` must be 2 to 4096");
        refused(r#""partitions":{"mode":"key","count":1}"#, "`partitions.count` must be 2 to 4096");
        refused(r#""partitions":{"mode":"hash","count":5000}"#, "`partitions.count` must be 2 to 4096");
        refused(r#""partitions":{"mode":"hash","count":2,"bands":[7]}"#, "`partitions.bands` goes with");
        refused(
            r#""partitions":{"mode":"bands","count":4095}"#,
            "`partitions.count` must leave at most 4096",
        );
        refused(r#""partitions":{"mode":"bands","bands":[4,7]}"#, "from the most urgent");
        refused(r#""partitions":{"mode":"bands","bands":[7,7]}"#, "from the most urgent");
        refused(r#""partitions":{"mode":"bands","bands":[null]}"#, "must be priorities");
        refused(r#""partitions":{"mode":"bands","bands":["high"]}"#, "`partitions.bands`");
        refused(r#""scheme":"signed","partitions":{"mode":"bands"}"#, "`partitions.bands` must be said");
        let many: Vec<String> = (0..17).rev().map(|level| level.to_string()).collect();
        let many =
            format!(r#""scheme":"signed","partitions":{{"mode":"bands","bands":[{}]}}"#, many.join(","));
        refused(&many, "`partitions.bands` must be at most 16");
        for mode in [r#""hash","count":2"#, r#""bands""#] {
            refused(
                &format!(r#""last_value":"key","partitions":{{"mode":{mode}}}"#),
                "use `partitions.mode` \"key\"",
            );
        }
        for mode in [r#""hash","count":2"#, r#""bands""#, r#""key","count":2"#] {
            refused(
                &format!(r#""last_value":"one","partitions":{{"mode":{mode}}}"#),
                "use `partitions.mode` \"none\"",
            );
        }
        refused(r#""group_limit":2,"partitions":{"mode":"key","count":2}"#, "`group_limit` is 1 where");
    }

    #[test]
    fn what_comes_again_finds_its_place_and_what_belongs_together_goes_together() {
        let hash = settings(r#""partitions":{"mode":"hash","count":16}"#);
        let traits = |key, id| Traits { key, id, origin: None };
        let place = |settings: &Settings, traits, turn| settings.place_of(Priority(4), traits, turn);
        assert_eq!(place(&hash, traits(None, Some("a")), 1), place(&hash, traits(Some("k"), Some("a")), 2));
        assert_eq!([16, 17, 35].map(|turn| place(&hash, traits(Some("k"), None), turn)), [0, 1, 3]);
        let key = settings(r#""partitions":{"mode":"key","count":16}"#);
        assert_eq!(
            place(&key, traits(Some("k"), Some("a")), 1),
            place(&key, traits(Some("k"), Some("b")), 2)
        );
        let limited = settings(r#""partitions":{"mode":"hash","count":16},"group_limit":2"#);
        assert_eq!(place(&limited, traits(Some("k"), Some("a")), 1), place(&key, traits(Some("k"), None), 7));
        let numbered = |number| Traits { origin: Some(("p", number)), ..Traits::default() };
        assert_eq!(place(&hash, numbered(1), 1), place(&hash, numbered(4_095), 2));
        assert_ne!(place(&hash, numbered(1), 1), place(&hash, numbered(4_096), 1));
    }

    #[test]
    fn ids_are_spread_evenly_and_never_go_elsewhere() {
        let hash = settings(r#""partitions":{"mode":"hash","count":16}"#);
        let place = |id: &str| hash.place_of(Priority(4), Traits { id: Some(id), ..Traits::default() }, 0);
        let mut counts = [0; 16];
        (0..16_000).for_each(|id| counts[usize::from(place(&id.to_string()))] += 1);
        assert!(counts.iter().all(|count| (900..1_100).contains(count)), "{counts:?}");
        assert_eq!(["order-1", "order-2", ""].map(place), [3, 3, 11]);
    }

    #[test]
    fn limits_are_shared_by_all_places_or_those_of_a_band() {
        let sharing = |json: &str, places: [u16; 4]| {
            let settings = settings(json);
            places.map(|place| settings.sharing(place))
        };
        assert_eq!(sharing(r#""partitions":{"mode":"hash","count":16}"#, [0, 1, 9, 15]), [16; 4]);
        let bands = r#""partitions":{"mode":"bands","count":8}"#;
        assert_eq!(sharing(bands, [0, 1, 2, 9]), [1, 1, 8, 8]);
        assert_eq!(sharing("", [0; 4]), [1; 4]);
    }

    #[test]
    fn one_message_of_a_key_is_out_where_places_go_by_the_key() {
        for (json, limit) in [
            (r#""partitions":{"mode":"key","count":2}"#, 1),
            (r#""partitions":{"mode":"key","count":2},"group_limit":1,"last_value":"key""#, 1),
            (r#""partitions":{"mode":"hash","count":2}"#, 0),
            (r#""partitions":{"mode":"hash","count":2},"group_limit":3"#, 3),
        ] {
            let settings = settings(json);
            settings.validate().expect(json);
            assert_eq!(settings.out_per_key(), limit, "{json}");
        }
    }

    #[test]
    fn nothing_is_written_where_nothing_is_said() {
        let written = |json: &str| serde_json::to_value(settings(json)).expect("settings are JSON");
        assert_eq!(written("").get("partitions"), None);
        for said in [
            serde_json::json!({ "mode": "key", "count": 2 }),
            serde_json::json!({ "mode": "bands", "bands": [7, 4] }),
        ] {
            assert_eq!(written(&format!(r#""partitions":{said}"#))["partitions"], said);
        }
        serde_json::from_str::<Settings>(r#"{"partitions":{"mod":"key"}}"#).expect_err("an unknown key");
    }
}
