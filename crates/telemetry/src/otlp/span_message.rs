//! The messages of `opentelemetry/proto` that traces need, version 1, by the numbers of their fields; what is never said is left out.

use prost::Message;

use super::message::{InstrumentationScope, KeyValue, Resource};

/// `collector/trace/v1/trace_service.proto`
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_spans: Vec<ResourceSpans>,
}

/// `trace/v1/trace.proto`, from here on.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) spans: Vec<Span>,
}

/// `SPAN_KIND_INTERNAL`, `_PRODUCER`, `_CONSUMER`
pub(crate) const INTERNAL: i32 = 1;
pub(crate) const PRODUCER: i32 = 4;
pub(crate) const CONSUMER: i32 = 5;
/// `SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK` and `_IS_REMOTE_MASK`: the parent is another program's.
pub(crate) const PARENT_IS_REMOTE: u32 = 0x300;
/// The first: what is linked to is known to be ours.
pub(crate) const IS_OURS: u32 = 0x100;
/// The flag of W3C that says sampled.
pub(crate) const SAMPLED: u32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(crate) trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(crate) name: String,
    #[prost(int32, tag = "6")]
    pub(crate) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(crate) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    pub(crate) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub(crate) flags: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub(crate) trace_state: String,
    #[prost(fixed32, tag = "6")]
    pub(crate) flags: u32,
}

/// `STATUS_CODE_ERROR`
pub(crate) const ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(int32, tag = "3")]
    pub(crate) code: i32,
}
