//! Documents in which no object has a key twice.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A document of which only one thing is kept: that no object in it, at any depth, has a key twice.
///
/// A map such as `serde_json::Map` keeps the last of two values and says nothing. A document that may hold maps is therefore first decoded
/// to this type, whose error is that of a derived struct: ``duplicate field `ttl_ms` ``.
#[derive(Clone, Copy, Debug)]
pub struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Document;
        impl<'de> Visitor<'de> for Document {
            type Value = UniqueKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<UniqueKeys, A::Error> {
                let mut keys = BTreeSet::new();
                while let Some(Key(key)) = object.next_key()? {
                    if keys.contains(&key) {
                        return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
                    }
                    keys.insert(key);
                    object.next_value::<UniqueKeys>()?;
                }
                Ok(UniqueKeys)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UniqueKeys, A::Error> {
                while list.next_element::<UniqueKeys>()?.is_some() {}
                Ok(UniqueKeys)
            }

            fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }

            fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
                Ok(UniqueKeys)
            }
        }
        deserializer.deserialize_any(Document)
    }
}

/// A key, borrowed from the document where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_there_twice_is_found_at_any_depth() {
        let check = |json: &str, expect: Option<&str>| {
            let why = serde_json::from_str::<UniqueKeys>(json).err().map(|why| why.to_string());
            let why = why.as_deref().and_then(|why| why.split(" at line").next());
            assert_eq!(why, expect, "{json}");
        };
        check(r#"{"a":1,"b":{"a":-2.5},"c":[{"a":null},{"a":true}],"d":"a"}"#, None);
        check(r#"{"a":1,"a":1}"#, Some("duplicate field `a`"));
        check(r#"{"a":1,"\u0061":1}"#, Some("duplicate field `a`"));
        check(r#"[{"b":{"c":[{"a":1,"x":2,"a":3}]}}]"#, Some("duplicate field `a`"));
        check(r#"{"a":1,"#, Some("EOF while parsing a value"));
    }
}
