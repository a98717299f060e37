//! An entry, as a program gets it.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::lanes::{Lane, Lanes};
use crate::layout::FIELD;
use crate::object::Object;
use crate::writer::Fields;

/// As urgent is what the backfill lane holds and does not say: `LOW`.
const LOW: i32 = -50;

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    id: String,
    lane: Lane,
    stream: String,
    fields: Fields,
    attempt: u64,
    body: String,
    metadata: Value,
}

impl Entry {
    /// # Errors
    /// Why nobody can read it, as a phrase.
    pub(crate) fn read(
        lane: Lane,
        stream: String,
        id: String,
        fields: &Fields,
        attempt: u64,
    ) -> Result<Self, String> {
        let (body, metadata) = parts(fields)?;
        Ok(Self { id, lane, stream, fields: fields.clone(), attempt, body, metadata })
    }

    /// Its id, `MILLISECONDS-NUMBER`; another entry of the other lane may have the same.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The lane it is in.
    #[must_use]
    pub fn lane(&self) -> Lane {
        self.lane
    }

    /// The stream it is in.
    #[must_use]
    pub fn stream(&self) -> &str {
        &self.stream
    }

    /// All its fields, as they were added.
    #[must_use]
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// How often it was handed over to anybody, this time included.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// What it is about: JSON, as it was written.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// [`Entry::body`], read.
    ///
    /// # Errors
    /// It is something else.
    pub fn data<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.body)
    }

    /// What is said about it; null where there is nothing.
    #[must_use]
    pub fn metadata(&self) -> &Value {
        &self.metadata
    }

    /// How urgent its metadata says that it is: a number or a name at `/domain/priority` or `/priority`.
    #[must_use]
    pub fn priority(&self) -> Option<i32> {
        ["/domain/priority", "/priority"].iter().find_map(|at| number(self.metadata.pointer(at)?))
    }

    /// How urgent it is to be handled: as it says. What the backfill lane holds is never more urgent than that lane, whatever it says: whoever wrote it there knew, and
    /// some write 0 into the metadata of everything.
    #[must_use]
    pub fn priority_in(&self, lanes: &Lanes) -> Option<i32> {
        let priority = self.priority();
        if self.lane == Lane::Primary || priority.is_some_and(|priority| priority < lanes.threshold()) {
            return priority;
        }
        Some(LOW.min(lanes.threshold().saturating_sub(1)))
    }
}

fn number(value: &Value) -> Option<i32> {
    match value {
        Value::Number(number) => i32::try_from(number.as_i64()?).ok(),
        Value::String(name) => match name.to_ascii_uppercase().as_str() {
            "BULK" => Some(-100),
            "LOW" => Some(LOW),
            "NORMAL" => Some(0),
            "HIGH" => Some(50),
            "CRITICAL" => Some(100),
            number => number.parse().ok(),
        },
        _ => None,
    }
}

fn parts(fields: &Fields) -> Result<(String, Value), String> {
    let text = fields.iter().find(|(name, _)| name == FIELD.as_bytes());
    let (_, text) = text.ok_or_else(|| format!("it has no field `{FIELD}`"))?;
    let object = Object::parse(text)?;
    let body = object.get("data").ok_or("its object has no `data`")?.to_owned();
    let metadata = object.get("metadata").map_or(Ok(Value::Null), serde_json::from_str);
    Ok((body, metadata.map_err(|error| format!("its metadata cannot be read: {error}"))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(lane: Lane, text: &str) -> Result<Entry, String> {
        let fields = vec![(b"data".to_vec(), text.as_bytes().to_vec())];
        Entry::read(lane, "customer".to_owned(), "1-0".to_owned(), &fields, 1)
    }

    #[test]
    fn a_priority_is_where_the_metadata_says_it() {
        let of = |metadata: &str| {
            let text = format!(r#"{{"data":1,"metadata":{metadata}}}"#);
            entry(Lane::Primary, &text).expect("an entry").priority()
        };
        assert_eq!(of(r#"{"domain":{"priority":-50}}"#), Some(-50));
        assert_eq!(of(r#"{"priority":"critical"}"#), Some(100));
        assert_eq!(of(r#"{"domain":{"priority":null},"priority":7}"#), Some(7));
        assert_eq!(of(r#"{"priority":3000000000}"#), None);
        assert_eq!(of("null"), None);
    }

    #[test]
    fn what_the_backfill_lane_holds_is_not_urgent_whatever_it_says() {
        let of = |lane, text| entry(lane, text).expect("an entry").priority_in(&Lanes::enabled());
        assert_eq!(of(Lane::Backfill, r#"{"data":1}"#), Some(-50));
        assert_eq!(of(Lane::Primary, r#"{"data":1}"#), None);
        assert_eq!(of(Lane::Backfill, r#"{"data":1,"metadata":{"priority":-7}}"#), Some(-7));
        assert_eq!(of(Lane::Backfill, r#"{"data":1,"metadata":{"priority":0}}"#), Some(-50));
        let finer = Lanes::new(true, -75, "backfill").expect("fine");
        assert_eq!(entry(Lane::Backfill, r#"{"data":1}"#).expect("an entry").priority_in(&finer), Some(-76));
    }

    #[test]
    fn what_nobody_can_read_says_why() {
        for (text, why) in
            [("7", "no JSON object"), ("{}", "no `data`"), ("{", "no JSON object"), ("", "no JSON")]
        {
            assert!(entry(Lane::Primary, text).expect_err(text).contains(why), "{text}");
        }
        let fields = vec![(b"body".to_vec(), b"{}".to_vec())];
        let why = Entry::read(Lane::Primary, String::new(), String::new(), &fields, 1).expect_err("refused");
        assert!(why.contains("no field `data`"), "{why}");
    }
}
