//! The fourteen properties of class basic (1.8.1), in the order in which they stand on the wire.

/// A property, by the bit that says whether it is there (4.2.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Property {
    /// `content-type`
    ContentType = 15,
    /// `content-encoding`
    ContentEncoding = 14,
    /// `headers`
    Headers = 13,
    /// `delivery-mode`
    DeliveryMode = 12,
    /// `priority`
    Priority = 11,
    /// `correlation-id`
    CorrelationId = 10,
    /// `reply-to`
    ReplyTo = 9,
    /// `expiration`
    Expiration = 8,
    /// `message-id`
    MessageId = 7,
    /// `timestamp`
    Timestamp = 6,
    /// `type`
    Type = 5,
    /// `user-id`
    UserId = 4,
    /// `app-id`
    AppId = 3,
    /// `cluster-id`, which 0-9-1 reserves and old clients send.
    ClusterId = 2,
}

/// How a property is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Short,
    Table,
    Octet,
    Time,
}

impl Property {
    /// All, in the order of the wire.
    pub const ALL: [Self; 14] = [
        Self::ContentType,
        Self::ContentEncoding,
        Self::Headers,
        Self::DeliveryMode,
        Self::Priority,
        Self::CorrelationId,
        Self::ReplyTo,
        Self::Expiration,
        Self::MessageId,
        Self::Timestamp,
        Self::Type,
        Self::UserId,
        Self::AppId,
        Self::ClusterId,
    ];

    /// Its place in [`ALL`](Self::ALL).
    pub(crate) fn index(self) -> usize {
        usize::from(Self::ContentType as u8 - self as u8)
    }

    /// Its bit in the word of flags.
    pub(crate) fn flag(self) -> u16 {
        1 << self as u8
    }

    pub(crate) fn form(self) -> Form {
        match self {
            Self::Headers => Form::Table,
            Self::DeliveryMode | Self::Priority => Form::Octet,
            Self::Timestamp => Form::Time,
            _ => Form::Short,
        }
    }
}
