//! What a message shows of itself to a condition.

use crate::source::compare;

/// A message as conditions see it.
///
/// An answer is the same however often it is asked for while a message is routed.
pub trait Subject {
    /// An application property, named in whatever case the route has it; [`is_same_name`] compares. Of several that differ in case only,
    /// the one that is written as in the route, else the first.
    ///
    /// Source: "property names are case insensitive" (Azure IoT Hub, "IoT Hub query language").
    fn property(&self, name: &str) -> Shown<'_>;

    /// A system property, named without its `$` and in whatever case the route has it.
    ///
    /// Which there are is the message's business. Routes written for IoT Edge know `contentType`, `contentEncoding`, `messageId`,
    /// `correlationId`, `userId`, `connectionDeviceId`, `connectionModuleId`, `enqueuedTime`, `inputName`, `outputName`, `to`
    /// and `expiryTimeUtc` (Azure IoT Hub, "Create and read IoT Hub messages").
    fn system(&self, name: &str) -> Shown<'_>;

    /// The body, and what is said about it.
    fn body(&self) -> Body<'_>;
}

/// Whether two names of properties are the same: case does not count, in any script.
#[must_use]
pub fn is_same_name(one: &str, other: &str) -> bool {
    compare(one, other).is_eq()
}

/// What is there of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown<'a> {
    /// Nothing: undefined in a condition.
    Missing,
    /// A property without a value: null.
    Null,
    /// Its text. Properties are always text.
    Text(&'a str),
}

impl<'a> From<Option<&'a str>> for Shown<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Missing, Self::Text)
    }
}

/// The body of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body<'a> {
    /// Its bytes.
    pub bytes: &'a [u8],
    /// Its media type: only `application/json` is looked into.
    pub content_type: Option<&'a str>,
    /// How its text became bytes: `utf-8`, which it is when nothing is said, `utf-16` or `utf-32`.
    pub content_encoding: Option<&'a str>,
}
