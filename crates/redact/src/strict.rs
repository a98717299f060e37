//! Strict decoding: only a table is taken for a struct, and no key is taken twice.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Unexpected, VariantAccess,
    Visitor,
};

/// A deserializer that refuses two things which serde accepts, at any depth of a document:
///
/// - a list where a struct is expected: a derived `Deserialize` takes its values for the fields in their order. The error is that of a list
///   where a map is expected.
/// - a key that is there twice in a map such as `serde_json::Map`, which keeps the last of the two values. The error is that of a derived
///   struct: ``duplicate field `ttl_ms` ``.
///
/// Everything else is decoded as the deserializer in it does. A list within a value that serde keeps aside until it knows its type (that of an untagged
/// enum or a flattened field) is refused only where the field is decoded by [`strict`].
#[derive(Clone, Copy, Debug)]
pub struct Strict<D>(pub D);

/// Decodes a value strictly: `deserialize_with` of a field that serde keeps aside, such as a flattened one.
///
/// # Errors
/// As [`Strict`], and those of the value.
pub fn strict<'de, D: Deserializer<'de>, T: serde::Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::deserialize(Strict(deserializer))
}

/// A part of a document that is read on behalf of `inner`, a visitor or an access of serde.
struct Within<T> {
    inner: T,
    expects: Expects,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expects {
    /// A struct, which is written as a table and reports itself a field that is there twice.
    Fields,
    /// Anything else.
    Any,
}

impl<T> Within<T> {
    fn any(inner: T) -> Self {
        Self { inner, expects: Expects::Any }
    }

    fn fields(inner: T) -> Self {
        Self { inner, expects: Expects::Fields }
    }
}

macro_rules! forward {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(Within::any(visitor))
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Strict<D> {
    type Error = D::Error;

    forward! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_option deserialize_unit deserialize_seq deserialize_map
        deserialize_identifier deserialize_ignored_any
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_unit_struct(name, Within::any(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Within::any(visitor))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple(len, Within::any(visitor))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_tuple_struct(name, len, Within::any(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_struct(name, fields, Within::fields(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_enum(name, variants, Within::any(visitor))
    }

    fn is_human_readable(&self) -> bool {
        self.0.is_human_readable()
    }
}

macro_rules! visit {
    ($($method:ident($type:ty))*) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.inner.$method(value)
        })*
    };
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Within<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(f)
    }

    visit! {
        visit_bool(bool) visit_i8(i8) visit_i16(i16) visit_i32(i32) visit_i64(i64) visit_i128(i128) visit_u8(u8) visit_u16(u16)
        visit_u32(u32) visit_u64(u64) visit_u128(u128) visit_f32(f32) visit_f64(f64) visit_char(char) visit_str(&str)
        visit_borrowed_str(&'de str) visit_string(String) visit_bytes(&[u8]) visit_borrowed_bytes(&'de [u8]) visit_byte_buf(Vec<u8>)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Strict(deserializer))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Strict(deserializer))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<V::Value, A::Error> {
        match self.expects {
            Expects::Fields => Err(A::Error::invalid_type(Unexpected::Seq, &self)),
            Expects::Any => self.inner.visit_seq(Within::any(list)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        match self.expects {
            Expects::Fields => self.inner.visit_map(Within::any(map)),
            Expects::Any => self.inner.visit_map(UniqueKeys { map, keys: BTreeSet::new() }),
        }
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Within::any(access))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Within<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Strict(deserializer))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Within<A> {
    type Error = A::Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, A::Error> {
        self.inner.next_element_seed(Within::any(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// The entries of a struct.
impl<'de, A: MapAccess<'de>> MapAccess<'de> for Within<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        self.inner.next_key_seed(seed)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.inner.next_value_seed(Within::any(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint()
    }
}

/// The entries of a map, and the keys that were there before.
struct UniqueKeys<'de, A> {
    map: A,
    keys: BTreeSet<Cow<'de, str>>,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for UniqueKeys<'de, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let Some(Key(key)) = self.map.next_key()? else { return Ok(None) };
        if self.keys.contains(&key) {
            return Err(A::Error::custom(format_args!("duplicate field `{key}`")));
        }
        self.keys.insert(key.clone());
        let key = match key {
            Cow::Borrowed(key) => seed.deserialize(BorrowedStrDeserializer::new(key)),
            Cow::Owned(key) => seed.deserialize(StringDeserializer::new(key)),
        };
        key.map(Some)
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, A::Error> {
        self.map.next_value_seed(Within::any(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.map.size_hint()
    }
}

/// A key, borrowed from the document where it has no escapes.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for Within<A> {
    type Error = A::Error;
    type Variant = Within<A::Variant>;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self::Variant), A::Error> {
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Within::any(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Within<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, A::Error> {
        self.inner.newtype_variant_seed(Within::any(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(len, Within::any(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, Within::fields(visitor))
    }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::Value;

    use super::*;

    fn read<T: DeserializeOwned>(json: &str) -> Result<T, String> {
        let read = T::deserialize(Strict(&mut serde_json::Deserializer::from_str(json)));
        read.map_err(|why| why.to_string().split(" at line").next().unwrap_or_default().to_owned())
    }

    #[test]
    fn a_key_that_is_there_twice_is_found_at_any_depth() {
        let check = |json: &str, expect: Option<&str>| {
            let (read, expect) = (read::<Value>(json), expect.map(ToOwned::to_owned));
            assert_eq!(read.clone().err(), expect, "{json}");
            if let Ok(value) = read {
                assert_eq!(value, serde_json::from_str::<Value>(json).expect("JSON"));
            }
        };
        check(r#"{"a":1,"b":{"a":-2.5},"c":[{"a":null},{"a":true}],"d":"a"}"#, None);
        check(r#"{"a":1,"a":1}"#, Some("duplicate field `a`"));
        check(r#"{"a":1,"\u0061":1}"#, Some("duplicate field `a`"));
        check(r#"[{"b":{"c":[{"a":1,"x":2,"a":3}]}}]"#, Some("duplicate field `a`"));
        check(r#"{"a":1,"#, Some("EOF while parsing a value"));
    }

    #[test]
    fn a_list_is_no_table_at_any_depth() {
        #[derive(Debug, PartialEq, serde::Deserialize)]
        struct Part {
            n: u8,
        }
        #[derive(Debug, PartialEq, serde::Deserialize)]
        enum Choice {
            Unit,
            One(Part),
            Fields { n: u8 },
            Pair(u8, Part),
        }
        #[derive(Debug, Default, PartialEq, serde::Deserialize)]
        #[serde(default)]
        struct Whole {
            part: Option<Part>,
            list: Vec<Part>,
            map: std::collections::BTreeMap<String, Part>,
            pair: Option<(u8, Part)>,
            choice: Option<Choice>,
        }
        let check = |json: &str, is_read: bool| {
            let plain = serde_json::from_str::<Whole>(json).expect(json);
            match read::<Whole>(json) {
                Ok(whole) => assert_eq!((whole, is_read), (plain, true), "{json}"),
                Err(why) => assert!(!is_read && why.starts_with("invalid type: sequence"), "{json}: {why}"),
            }
        };
        check(r#"{"part":{"n":1},"list":[{"n":2}],"map":{"a":{"n":3}},"pair":[4,{"n":5}]}"#, true);
        check(r#"{"part":null,"choice":"Unit"}"#, true);
        check(r#"{"choice":{"One":{"n":1}}}"#, true);
        check(r#"{"choice":{"Fields":{"n":1}}}"#, true);
        check(r#"{"choice":{"Pair":[1,{"n":1}]}}"#, true);
        check("[]", false);
        for list in [r#""part":[1]"#, r#""list":[[2]]"#, r#""map":{"a":[3]}"#, r#""pair":[4,[5]]"#] {
            check(&format!("{{{list}}}"), false);
        }
        for list in [r#"{"One":[1]}"#, r#"{"Fields":[1]}"#, r#"{"Pair":[1,[1]]}"#] {
            check(&format!(r#"{{"choice":{list}}}"#), false);
        }
    }
}
