//! What holds for a place: the settings of its queue in the words of its functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use overtake_lane::{
    Backoff, DeadLetterTo, FIFO_LANE, Given, LastValue, Merger, Order, Overflow, PickerKind, Priority,
    RateLimit, Scheme, Settings,
};
use serde::Serialize;

/// Settings as a place reads them. Lanes are known by their levels, and priorities by what they mean inside.
#[derive(Clone, Debug, Serialize)]
pub struct Terms {
    name: Arc<str>,
    /// That the queue was declared with.
    scheme: Scheme,
    order: Lanes,
    /// By whose levels there are lanes, under `order = "priority"`; none: they are numbers up to any most.
    #[serde(skip_serializing_if = "Option::is_none")]
    levels: Option<Scheme>,
    /// Names of lanes by level, where that is not its number.
    lanes: BTreeMap<i32, String>,
    picker: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    aging_ms: Option<u64>,
    weights: BTreeMap<i32, u32>,
    caps: BTreeMap<i32, u32>,
    paused: bool,
    max_active: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<RateLimit>,
    /// What the settings say of keys, if they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    keys: Option<Keys>,
    max_length: u64,
    max_bytes: u64,
    overflow: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reject_below: Option<Reject>,
    max_message_bytes: u64,
    ttl_ms: u64,
    max_ttl_ms: u64,
    expire_at_once: bool,
    evict_at_once: bool,
    delivery_limit: u32,
    backoff: Backoff,
    dead_letter: &'static str,
    history: bool,
    dead_letter_expired: bool,
    dead_letter_evicted: bool,
    notes_work: bool,
    run_timeout_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_value: Option<&'static str>,
    by_clock: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
enum Lanes {
    /// One for each priority in use.
    Priority(&'static str),
    Bands(Vec<Band>),
}

#[derive(Clone, Debug, Serialize)]
struct Band {
    level: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<i32>,
}

#[derive(Clone, Debug, Serialize)]
struct Keys {
    limit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<RateLimit>,
    fair: bool,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    weights: BTreeMap<String, u32>,
}

#[derive(Clone, Debug, Serialize)]
struct Reject {
    depth: u64,
    priority: i32,
}

impl Terms {
    /// What holds for a queue of this name. `default_ttl_ms` is for messages that neither bring a time to live nor find one in the settings, `max_message_bytes` for
    /// all queues; 0: none.
    #[must_use]
    pub fn new(name: Arc<str>, settings: &Settings, default_ttl_ms: u64, max_message_bytes: u64) -> Self {
        let (order, lanes) = lanes(settings);
        let level = |lane: &str| level_of(settings, lane);
        let (picker, aging_ms, weights) = match &settings.picker {
            PickerKind::Strict => ("strict", None, BTreeMap::new()),
            PickerKind::AgingMs(step) => ("aging", Some(*step), BTreeMap::new()),
            PickerKind::Weighted(weights) => {
                let of = |(lane, weight): (&String, &u32)| Some((level(lane)?, (*weight).max(1)));
                ("weighted", None, weights.iter().filter_map(of).collect())
            }
        };
        let cap = |(lane, cap): (&String, &overtake_lane::LaneSettings)| Some((level(lane)?, cap.max_active));
        let reject = settings.reject_below.as_ref().and_then(|reject| {
            let priority = settings.scheme.map(&reject.priority).ok()?.0;
            Some(Reject { depth: reject.depth, priority })
        });
        let Settings { key_rate_limit, fair_keys, .. } = *settings;
        let group_limit = settings.out_per_key();
        let keys = (group_limit > 0 || key_rate_limit.is_some() || fair_keys).then_some(Keys {
            limit: group_limit,
            rate: key_rate_limit,
            fair: fair_keys,
            weights: settings.key_weights.clone(),
        });
        let dead_letter = match &settings.dead_letter {
            DeadLetterTo::Drop => "drop",
            DeadLetterTo::Keep => "keep",
            // A queue that is its own dead-letter queue keeps them.
            DeadLetterTo::Queue(to) if **to == *name => "keep",
            DeadLetterTo::Queue(_) | DeadLetterTo::Exchange { .. } => "leave",
        };
        let history = settings.history.as_deref().is_some_and(|history| *history != *name);
        let least = [settings.max_message_bytes, max_message_bytes].into_iter().filter(|most| *most > 0);
        Self {
            name,
            scheme: settings.scheme,
            order,
            levels: Some(settings.scheme)
                .filter(|scheme| settings.order == Order::Priority && !matches!(scheme, Scheme::Max(_))),
            lanes,
            picker,
            aging_ms,
            weights,
            caps: settings.lanes.iter().filter_map(cap).collect(),
            paused: settings.paused,
            max_active: settings.max_active,
            rate: settings.rate_limit,
            keys,
            max_length: settings.max_length,
            max_bytes: settings.max_bytes,
            overflow: match settings.overflow {
                Overflow::Evict => "evict",
                Overflow::Reject => "reject",
                Overflow::RejectDeadLetter => "reject_dead_letter",
            },
            reject_below: reject,
            max_message_bytes: least.min().unwrap_or(0),
            ttl_ms: if settings.ttl_ms > 0 { settings.ttl_ms } else { default_ttl_ms },
            max_ttl_ms: settings.max_ttl_ms,
            expire_at_once: settings.expire_at_once,
            evict_at_once: settings.evict_at_once,
            delivery_limit: settings.delivery_limit,
            backoff: settings.backoff,
            dead_letter,
            history,
            dead_letter_expired: settings.dead_letter_expired,
            dead_letter_evicted: settings.dead_letter_evicted,
            notes_work: settings.history.is_some() || settings.run_timeout_ms > 0,
            run_timeout_ms: settings.run_timeout_ms,
            last_value: settings.last_value.map(|kind| match kind {
                LastValue::Key => "key",
                LastValue::One => "one",
            }),
            by_clock: false,
        }
    }

    /// The same where policies say more than the settings that the queue was declared with: what of those is fixed while messages are there.
    #[must_use]
    pub fn of_declared(self, own: &Settings) -> Self {
        Self { scheme: own.scheme, ..self }
    }

    /// The same for a place that is one of several, of which so many share what the queue may hold and how fast it may go: sequences and leases are counted by a clock, so that
    /// they can be compared, and the place has an equal share of lengths and of rates, rounded up.
    #[must_use]
    pub fn of_several(self, sharing: u16) -> Self {
        let sharing = u64::from(sharing.max(1));
        // As many in so long, as far as one at a time is not too many.
        let rate = |rate: RateLimit| {
            let messages = (u64::from(rate.messages) / sharing).max(1);
            let per_ms = rate.per_ms.saturating_mul(sharing).saturating_mul(messages)
                / u64::from(rate.messages.max(1));
            RateLimit { messages: messages as u32, per_ms }
        };
        Self {
            by_clock: true,
            max_length: self.max_length.div_ceil(sharing),
            max_bytes: self.max_bytes.div_ceil(sharing),
            reject_below: self
                .reject_below
                .map(|reject| Reject { depth: reject.depth.div_ceil(sharing), ..reject }),
            rate: self.rate.map(rate),
            ..self
        }
    }

    /// By what heads of several places are merged.
    #[must_use]
    pub fn merger(&self) -> Merger {
        let kind = match self.picker {
            "weighted" => PickerKind::Weighted(BTreeMap::new()),
            "aging" => PickerKind::AgingMs(self.aging_ms.unwrap_or_default()),
            _ => PickerKind::Strict,
        };
        Merger::new(&kind, self.weights.clone())
    }

    /// Whether the most urgent lane always goes first, so that a place may be asked for several messages at once.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        self.picker == "strict"
    }

    /// Whether nothing but the lanes decides what goes next: the most urgent one always goes first, and neither keys nor caps of lanes hold back some of it. So it can be seen before it is taken.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.is_strict() && self.keys.is_none() && self.caps.values().all(|cap| *cap == 0)
    }

    /// Whether there is a limit of what is out at once, of the queue or of a lane.
    #[must_use]
    pub fn is_limited(&self) -> bool {
        self.max_active > 0 || self.caps.values().any(|cap| *cap > 0)
    }

    /// Limits of what is out at once that a message of this level comes under: that of its lane, that of the queue (`None`).
    #[must_use]
    pub fn limits(&self, level: i32) -> Vec<Option<i32>> {
        let of_queue = (self.max_active > 0).then_some(None);
        let of_lane = self.caps.get(&level).is_some_and(|cap| *cap > 0).then_some(Some(level));
        of_lane.into_iter().chain(of_queue).collect()
    }

    /// The level of the lane that takes a priority.
    #[must_use]
    pub fn level(&self, priority: Priority) -> i32 {
        match &self.order {
            Lanes::Priority(_) => priority.0,
            Lanes::Bands(bands) => {
                let takes = |band: &&Band| band.floor.is_none_or(|floor| priority.0 >= floor);
                bands.iter().find(takes).or(bands.last()).map_or(0, |band| band.level)
            }
        }
    }

    /// The level of the least urgent lane that takes no less urgent priority than this; `None`: of all lanes. One that no lane has where there is none.
    #[must_use]
    pub fn least_level(&self, at_least: Priority) -> Option<i32> {
        if at_least.0 == i32::MIN {
            return None;
        }
        Some(match &self.order {
            Lanes::Priority(_) => at_least.0,
            Lanes::Bands(bands) => {
                let takes = |band: &&Band| band.floor.is_some_and(|floor| floor >= at_least.0);
                bands.iter().filter(takes).map(|band| band.level).min().unwrap_or(i32::MAX)
            }
        })
    }

    /// The level of the lane of this name.
    #[must_use]
    pub fn level_named(&self, name: &str) -> Option<i32> {
        let named = self.lanes.iter().find(|(_, lane)| *lane == name).map(|(level, _)| *level);
        named.or_else(|| name.parse().ok())
    }

    /// The level of the lane of this name, if there may be such a lane.
    #[must_use]
    pub fn level_of_lane(&self, name: &str) -> Option<i32> {
        match self.order {
            Lanes::Priority(_) => self.level_named(name),
            Lanes::Bands(_) => self.lanes.iter().find(|(_, lane)| *lane == name).map(|(level, _)| *level),
        }
    }

    /// As JSON, which is how a place is told.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("terms are plain data")
    }
}

/// The priorities that a scheme has a name for, or another number.
fn names(scheme: Scheme) -> BTreeMap<i32, String> {
    let levels = match scheme {
        Scheme::TenLevel | Scheme::Max(_) => 0..0,
        Scheme::Named | Scheme::Route => 0..11,
        Scheme::Signed => -100..101,
    };
    let name = |level: i32| (level, scheme.name(Priority(level)).into_owned());
    levels.map(name).filter(|(level, name)| level.to_string() != *name).collect()
}

fn lanes(settings: &Settings) -> (Lanes, BTreeMap<i32, String>) {
    match &settings.order {
        Order::Priority => (Lanes::Priority("priority"), names(settings.scheme)),
        Order::Fifo => {
            (Lanes::Bands(vec![Band { level: 0, floor: None }]), BTreeMap::from([(0, FIFO_LANE.to_owned())]))
        }
        Order::Lanes(bands) => {
            let levels = (0..bands.len() as i32).rev();
            let band = |(band, level): (&overtake_lane::Band, i32)| {
                let floor = band.from.as_ref().and_then(|from| settings.scheme.map(from).ok());
                Band { level, floor: floor.map(|floor| floor.0) }
            };
            let names = bands.iter().zip(levels.clone()).map(|(band, level)| (level, band.name.clone()));
            (Lanes::Bands(bands.iter().zip(levels).map(band).collect()), names.collect())
        }
    }
}

/// The level of a lane that settings name.
fn level_of(settings: &Settings, lane: &str) -> Option<i32> {
    match &settings.order {
        Order::Fifo => (lane == FIFO_LANE).then_some(0),
        Order::Lanes(bands) => {
            let at = bands.iter().position(|band| band.name == lane)?;
            Some((bands.len() - 1 - at) as i32)
        }
        Order::Priority => {
            let given = lane.parse::<Given>().unwrap_or(Given::Missing);
            let named = |given: &Given| settings.scheme.map(given).ok();
            let is_it = |scheme: Scheme, level| *scheme.name(level) == *lane;
            let level = named(&given).filter(|level| is_it(settings.scheme, *level));
            let level =
                level.or_else(|| named(&Given::Missing).filter(|level| is_it(settings.scheme, *level)));
            level.map(|level| level.0)
        }
    }
}
