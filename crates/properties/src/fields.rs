//! Properties taken apart, to be written whole.

use crate::layout::FLAGS_LEN;
use crate::properties::{Properties, PropertiesRef};
use crate::property::Property;
use crate::reader::write_long;
use crate::short::Short;
use crate::table::TableRef;

/// All properties, each there or not; what they mean is said at [`PropertiesRef`]'s methods.
///
/// ```
/// use overtake_properties::{Fields, Short};
///
/// let fields = Fields { priority: Some(7), message_id: Short::new(b"m1"), ..Fields::default() };
/// assert_eq!(fields.encode().as_bytes().as_ref(), b"\x08\x80\x07\x02m1");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is what the method of that name answers")]
pub struct Fields<'a> {
    pub content_type: Option<Short<'a>>,
    pub content_encoding: Option<Short<'a>>,
    pub headers: Option<TableRef<'a>>,
    pub delivery_mode: Option<u8>,
    pub priority: Option<u8>,
    pub correlation_id: Option<Short<'a>>,
    pub reply_to: Option<Short<'a>>,
    pub expiration: Option<Short<'a>>,
    pub message_id: Option<Short<'a>>,
    pub timestamp: Option<u64>,
    pub kind: Option<Short<'a>>,
    pub user_id: Option<Short<'a>>,
    pub app_id: Option<Short<'a>>,
    pub cluster_id: Option<Short<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads every property.
    #[must_use]
    pub fn of(properties: PropertiesRef<'a>) -> Self {
        Self {
            content_type: properties.content_type(),
            content_encoding: properties.content_encoding(),
            headers: properties.headers(),
            delivery_mode: properties.delivery_mode(),
            priority: properties.priority(),
            correlation_id: properties.correlation_id(),
            reply_to: properties.reply_to(),
            expiration: properties.expiration(),
            message_id: properties.message_id(),
            timestamp: properties.timestamp(),
            kind: properties.kind(),
            user_id: properties.user_id(),
            app_id: properties.app_id(),
            cluster_id: properties.cluster_id(),
        }
    }

    /// The properties as bytes.
    #[must_use]
    pub fn encode(&self) -> Properties {
        let mut out = Draft { flags: 0, bytes: vec![0; FLAGS_LEN] };
        out.short(Property::ContentType, self.content_type);
        out.short(Property::ContentEncoding, self.content_encoding);
        if let Some(headers) = self.headers {
            write_long(out.begin(Property::Headers), headers.as_bytes());
        }
        out.number(Property::DeliveryMode, self.delivery_mode.map(u8::to_be_bytes));
        out.number(Property::Priority, self.priority.map(u8::to_be_bytes));
        out.short(Property::CorrelationId, self.correlation_id);
        out.short(Property::ReplyTo, self.reply_to);
        out.short(Property::Expiration, self.expiration);
        out.short(Property::MessageId, self.message_id);
        out.number(Property::Timestamp, self.timestamp.map(u64::to_be_bytes));
        out.short(Property::Type, self.kind);
        out.short(Property::UserId, self.user_id);
        out.short(Property::AppId, self.app_id);
        out.short(Property::ClusterId, self.cluster_id);
        out.bytes[..FLAGS_LEN].copy_from_slice(&out.flags.to_be_bytes());
        Properties::written(out.bytes)
    }
}

/// Properties being written in the order of the wire.
struct Draft {
    flags: u16,
    bytes: Vec<u8>,
}

impl Draft {
    fn begin(&mut self, property: Property) -> &mut Vec<u8> {
        self.flags |= property.flag();
        &mut self.bytes
    }

    fn short(&mut self, property: Property, value: Option<Short<'_>>) {
        if let Some(value) = value {
            value.write(self.begin(property));
        }
    }

    fn number<const N: usize>(&mut self, property: Property, value: Option<[u8; N]>) {
        if let Some(value) = value {
            self.begin(property).extend_from_slice(&value);
        }
    }
}
