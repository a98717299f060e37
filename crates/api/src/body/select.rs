//! Bodies that select messages: by id, by filter, or all messages by an explicit `"all": true`.
//!
//! No field takes `null`: a condition whose value was lost on its way would select more messages than were meant.

use overtake_engine::{Filter, Select};
use overtake_lane::{Given, Status};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use super::{GivenIn, HeadersIn, check_headers};
use crate::name::checked_id;
use crate::problem::Problem;
use crate::schema::{PrioritySchema, StatusSchema};

/// Decodes a field that may be left out, but not be `null`.
fn said<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A priority that is given: not `null`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaidPriority(pub Given);

impl<'de> Deserialize<'de> for SaidPriority {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match GivenIn::deserialize(deserializer)?.0 {
            Given::Missing => {
                Err(D::Error::custom("expected a priority: a whole number or a name, found null"))
            }
            given => Ok(Self(given)),
        }
    }
}

/// Which messages: those that match everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Filter)]
struct FilterIn {
    /// Only what stands so.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<StatusSchema>, nullable = false)]
    status: Option<Status>,
    /// Only this priority.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<PrioritySchema>, nullable = false)]
    priority: Option<SaidPriority>,
    /// Only those that were published without a priority.
    #[serde(default)]
    without_priority: bool,
    /// Only this key.
    #[serde(default, deserialize_with = "said")]
    #[schema(nullable = false)]
    key: Option<String>,
    /// Only those with all these headers, compared as text.
    #[serde(default)]
    #[schema(value_type = Object)]
    headers: HeadersIn,
    /// Only those that say they are of this user.
    #[serde(default, deserialize_with = "said")]
    #[schema(nullable = false)]
    user_id: Option<String>,
}

/// Which messages to remove: `filter`, or `"all": true`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Remove)]
pub struct SelectIn {
    /// Which.
    #[serde(default)]
    filter: FilterIn,
    /// Every message. Must be said: an empty filter is refused.
    #[serde(default)]
    all: bool,
    /// How many messages match, as far as the client knows. Where another number does, nothing is done: 409 `count-differs`.
    #[serde(default, deserialize_with = "said")]
    #[schema(nullable = false)]
    expect: Option<u64>,
}

/// Another priority for `filter`, or for `"all": true`.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Reprioritise)]
pub struct ReprioritiseIn {
    /// The new priority.
    #[schema(value_type = PrioritySchema)]
    priority: SaidPriority,
    /// Which.
    #[serde(default)]
    filter: FilterIn,
    /// Every message. Must be said: an empty filter is refused.
    #[serde(default)]
    all: bool,
    /// How many messages match, as far as the client knows. Where another number does, nothing is done: 409 `count-differs`.
    #[serde(default, deserialize_with = "said")]
    #[schema(nullable = false)]
    expect: Option<u64>,
}

/// Another priority.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewPriority)]
pub struct PriorityIn {
    /// The new priority.
    #[schema(value_type = PrioritySchema)]
    pub priority: SaidPriority,
}

/// What to purge.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Purge)]
pub struct PurgeIn {
    /// `ready`, `delayed` or `dead`; missing: what is ready or delayed.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<StatusSchema>, nullable = false)]
    status: Option<Status>,
    /// How many messages these are, as far as the client knows. Where another number does, nothing is done: 409 `count-differs`.
    #[serde(default, deserialize_with = "said")]
    #[schema(nullable = false)]
    pub expect: Option<u64>,
}

/// Which dead letters to replay: one of `id`, `filter` and `"all": true`.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Replay)]
pub struct ReplayIn {
    /// The one with this id.
    #[serde(default, deserialize_with = "said")]
    #[schema(nullable = false)]
    id: Option<String>,
    /// Those that match.
    #[serde(default, deserialize_with = "said")]
    #[schema(nullable = false)]
    filter: Option<FilterIn>,
    /// Every dead letter.
    #[serde(default)]
    all: bool,
    /// How many messages match, as far as the client knows. Where another number does, nothing is done: 409 `count-differs`.
    #[serde(default, deserialize_with = "said")]
    #[schema(nullable = false)]
    expect: Option<u64>,
    /// Replay with this priority; missing: with the one they had.
    #[serde(default, deserialize_with = "said")]
    #[schema(value_type = Option<PrioritySchema>, nullable = false)]
    priority: Option<SaidPriority>,
}

impl FilterIn {
    /// Converts the body to a filter of the engine.
    ///
    /// # Errors
    /// 422 for headers that no message can have.
    fn into_filter(self) -> Result<Filter, Problem> {
        check_headers(&self.headers.0)?;
        let Self { status, priority, without_priority, key, headers, user_id } = self;
        let (priority, headers) = (priority.map(|given| given.0), headers.into_texts());
        Ok(Filter { status, priority, without_priority, key, headers, user_id, ..Filter::default() })
    }

    fn select(self, all: bool, expect: Option<u64>) -> Result<Select, Problem> {
        let select = Select::matching(self.into_filter()?, all);
        let select = select.map_err(|unclear| Problem::bad_value(unclear.key(), unclear.to_string()))?;
        Ok(match (select, expect) {
            (Select::Matching(filter), Some(expect)) => Select::Counted { filter, expect },
            (select, _) => select,
        })
    }
}

impl SelectIn {
    /// Returns the messages to remove.
    ///
    /// # Errors
    /// 422 unless exactly one of a filter and `all` is given.
    pub fn into_select(self) -> Result<Select, Problem> {
        self.filter.select(self.all, self.expect)
    }
}

impl ReprioritiseIn {
    /// Returns the messages to change, and their new priority.
    ///
    /// # Errors
    /// 422 unless exactly one of a filter and `all` is given.
    pub fn into_parts(self) -> Result<(Select, Given), Problem> {
        Ok((self.filter.select(self.all, self.expect)?, self.priority.0))
    }
}

impl PurgeIn {
    /// Returns the status of the messages to purge.
    ///
    /// # Errors
    /// 422 for `leased`: a purge does not take messages from their consumers.
    pub fn checked(&self) -> Result<Option<Status>, Problem> {
        if self.status == Some(Status::Leased) {
            return Err(Problem::bad_value(
                "status",
                "purge takes ready, delayed or dead: leased messages stay",
            )
            .hint("use remove with a filter to take messages away from their consumers"));
        }
        Ok(self.status)
    }
}

impl ReplayIn {
    /// Returns the dead letters to replay, and their new priority.
    ///
    /// # Errors
    /// 422 unless exactly one of `id`, `filter` and `all` is given.
    pub fn into_parts(self) -> Result<(Select, Option<Given>), Problem> {
        let mut select = match (self.id, self.filter, self.all) {
            (Some(id), None, false) => Select::Id(checked_id(id)?),
            (None, Some(filter), false) => filter.select(false, self.expect)?,
            (None, None, true) => FilterIn::default().select(true, self.expect)?,
            _ => return Err(Problem::bad_value("id", "give one of `id`, `filter` and `\"all\": true`")),
        };
        if let Select::Counted { filter, .. } = &mut select {
            // Only dead letters are replayed, and only they are counted.
            filter.status.get_or_insert(Status::Dead);
        }
        Ok((select, self.priority.map(|given| given.0)))
    }
}
