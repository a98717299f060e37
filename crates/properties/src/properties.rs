//! The properties of a message (4.2.6.1), as the bytes they came in.
//!
//! ```text
//! 0  2  flags: bit 15 is content-type, bit 2 cluster-id; bit 0 would say that more flags follow
//! 2     the properties whose bits are set, from bit 15 down, nothing between them
//! ```
//!
//! A broker reads four of them and hands on all. So they are checked and located in one pass, kept as bytes, and a change
//! of one leaves every other byte as it was.

use std::fmt;

use bytes::Bytes;

use crate::check;
use crate::fault::Fault;
use crate::fields::Fields;
use crate::layout::{FLAGS_LEN, Layout};
use crate::limits::Limits;
use crate::property::Property;
use crate::reader::{Reader, write_long};
use crate::short::Short;
use crate::table::TableRef;

const NONE: &[u8] = &[0; FLAGS_LEN];

/// Properties that own their bytes, or a part of somebody's; cheap to clone. Equal when their bytes are.
#[derive(Clone, PartialEq, Eq)]
pub struct Properties {
    bytes: Bytes,
    layout: Layout,
}

impl Properties {
    /// No property at all.
    pub const EMPTY: Self = Self { bytes: Bytes::from_static(NONE), layout: Layout::EMPTY };

    /// Takes bytes that came from outside: flags and values, without the class, the weight and the body size in front. They
    /// are not copied.
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn check(bytes: Bytes, limits: &Limits) -> Result<Self, Fault> {
        let layout = PropertiesRef::check(&bytes, limits)?.layout;
        Ok(Self { bytes, layout })
    }

    /// Of bytes that we wrote.
    pub(crate) fn written(bytes: Vec<u8>) -> Self {
        let layout = Layout::of(&bytes).expect("properties are written as they are read");
        Self { bytes: bytes.into(), layout }
    }

    /// Flags and values, as they came in.
    #[must_use]
    pub fn as_bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The same, borrowed, to be read.
    #[must_use]
    pub fn view(&self) -> PropertiesRef<'_> {
        PropertiesRef { bytes: &self.bytes, layout: self.layout }
    }
}

impl Default for Properties {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}

/// Properties, borrowed and checked. Equal when their bytes are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PropertiesRef<'a> {
    bytes: &'a [u8],
    layout: Layout,
}

impl<'a> PropertiesRef<'a> {
    /// No property at all.
    pub const EMPTY: PropertiesRef<'static> = PropertiesRef { bytes: NONE, layout: Layout::EMPTY };

    /// Takes bytes that came from outside: flags and values, without the class, the weight and the body size in front.
    ///
    /// # Errors
    /// Any [`Fault`].
    pub fn check(bytes: &'a [u8], limits: &Limits) -> Result<Self, Fault> {
        if bytes.len() > limits.bytes as usize {
            return Err(Fault::TooLong);
        }
        let properties = Self { bytes, layout: Layout::of(bytes)? };
        if let Some(headers) = properties.headers() {
            check::table(headers.as_bytes(), limits)?;
        }
        Ok(properties)
    }

    /// Flags and values, as they came in.
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Whether the property is there.
    #[must_use]
    pub fn has(self, property: Property) -> bool {
        self.layout.has(property)
    }

    /// MIME type of the body.
    #[must_use]
    pub fn content_type(self) -> Option<Short<'a>> {
        self.short(Property::ContentType)
    }

    /// MIME encoding of the body.
    #[must_use]
    pub fn content_encoding(self) -> Option<Short<'a>> {
        self.short(Property::ContentEncoding)
    }

    /// The headers.
    #[must_use]
    pub fn headers(self) -> Option<TableRef<'a>> {
        let bytes = self.value(Property::Headers)?.long().expect("checked when it came in");
        Some(TableRef::trusted(bytes))
    }

    /// 1 is transient, 2 is persistent; the rest means nothing.
    #[must_use]
    pub fn delivery_mode(self) -> Option<u8> {
        self.octet(Property::DeliveryMode)
    }

    /// How urgent, by the wire; the specification knows 0 to 9, RabbitMQ all.
    #[must_use]
    pub fn priority(self) -> Option<u8> {
        self.octet(Property::Priority)
    }

    /// What this is an answer to.
    #[must_use]
    pub fn correlation_id(self) -> Option<Short<'a>> {
        self.short(Property::CorrelationId)
    }

    /// The queue for the answer.
    #[must_use]
    pub fn reply_to(self) -> Option<Short<'a>> {
        self.short(Property::ReplyTo)
    }

    /// Time to live, milliseconds, in decimal digits if the publisher is right.
    #[must_use]
    pub fn expiration(self) -> Option<Short<'a>> {
        self.short(Property::Expiration)
    }

    /// The publisher's id of the message.
    #[must_use]
    pub fn message_id(self) -> Option<Short<'a>> {
        self.short(Property::MessageId)
    }

    /// When it was made, seconds since 1970, by the publisher's clock.
    #[must_use]
    pub fn timestamp(self) -> Option<u64> {
        let seconds = self.value(Property::Timestamp)?.array().expect("checked when it came in");
        Some(u64::from_be_bytes(seconds))
    }

    /// The publisher's kind of message; `type` on the wire.
    #[must_use]
    pub fn kind(self) -> Option<Short<'a>> {
        self.short(Property::Type)
    }

    /// The user who published; RabbitMQ checks it.
    #[must_use]
    pub fn user_id(self) -> Option<Short<'a>> {
        self.short(Property::UserId)
    }

    /// The program that published.
    #[must_use]
    pub fn app_id(self) -> Option<Short<'a>> {
        self.short(Property::AppId)
    }

    /// Reserved by 0-9-1; handed on.
    #[must_use]
    pub fn cluster_id(self) -> Option<Short<'a>> {
        self.short(Property::ClusterId)
    }

    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_properties(self) -> Properties {
        Properties { bytes: Bytes::copy_from_slice(self.bytes), layout: self.layout }
    }

    /// A copy with these headers, or with none. All other properties keep their bytes; so with the other `with`s.
    #[must_use]
    pub fn with_headers(self, headers: Option<TableRef<'_>>) -> Properties {
        self.with(Property::Headers, headers, |headers, out| write_long(out, headers.as_bytes()))
    }

    /// A copy with this delivery mode, or with none.
    #[must_use]
    pub fn with_delivery_mode(self, delivery_mode: Option<u8>) -> Properties {
        self.with(Property::DeliveryMode, delivery_mode, |octet, out| out.push(octet))
    }

    /// A copy with this priority, or with none.
    #[must_use]
    pub fn with_priority(self, priority: Option<u8>) -> Properties {
        self.with(Property::Priority, priority, |octet, out| out.push(octet))
    }

    /// A copy with this expiration, or with none.
    #[must_use]
    pub fn with_expiration(self, expiration: Option<Short<'_>>) -> Properties {
        self.with(Property::Expiration, expiration, Short::write)
    }

    /// A copy with this time, or with none.
    #[must_use]
    pub fn with_timestamp(self, timestamp: Option<u64>) -> Properties {
        self.with(Property::Timestamp, timestamp, |time, out| out.extend_from_slice(&time.to_be_bytes()))
    }

    /// A copy without that property.
    #[must_use]
    pub fn without(self, property: Property) -> Properties {
        self.with(property, None::<()>, |(), _| ())
    }

    fn with<T>(self, property: Property, value: Option<T>, write: impl Fn(T, &mut Vec<u8>)) -> Properties {
        let span = self.layout.span(self.bytes, property);
        let flags = self.layout.flags() & !property.flag();
        let flags = if value.is_some() { flags | property.flag() } else { flags };
        let mut out = Vec::with_capacity(self.bytes.len() + 16);
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend_from_slice(&self.bytes[FLAGS_LEN..span.start]);
        if let Some(value) = value {
            write(value, &mut out);
        }
        out.extend_from_slice(&self.bytes[span.end..]);
        Properties::written(out)
    }

    fn octet(self, property: Property) -> Option<u8> {
        self.value(property)?.octet()
    }

    fn short(self, property: Property) -> Option<Short<'a>> {
        self.value(property)?.short()
    }

    /// What stands in the place of a property that is there.
    fn value(self, property: Property) -> Option<Reader<'a>> {
        self.has(property).then(|| Reader::new(&self.bytes[self.layout.span(self.bytes, property)]))
    }
}

impl Default for PropertiesRef<'_> {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl fmt::Debug for PropertiesRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Fields::of(*self).fmt(f)
    }
}
