//! Decoding of arbitrary bytes, for fuzz targets: every input gives a value or a problem, and none causes a panic.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use overtake_engine::Target;
use overtake_lane::Settings;
use serde::de::DeserializeOwned;

use crate::body::{
    BindingIn, ExchangeIn, ExchangePublishIn, ExtendIn, LeaseIn, Limits, PriorityIn, PublishIn, PurgeIn,
    ReplayIn, ReprioritiseIn, SelectIn, SettleIn, TransactionIn, receipts,
};
use crate::json::decode;
use crate::params::Params;
use crate::problem::Problem;
use crate::raw;

const LIMITS: Limits = Limits { max_message_bytes: 1 << 20 };

/// Decodes the bytes as the body of each request, as a query, and as a raw message with headers.
///
/// # Panics
/// When decoding panics, or a problem lacks a code, a detail or a hint.
pub fn request(bytes: &[u8]) {
    let name: Arc<str> = Arc::from("q");
    read(bytes, |settings: Settings| settings.validate().map_err(|bad| Problem::bad_value(bad.key, bad.why)));
    read(bytes, |publish: PublishIn| publish.into_messages(&name, LIMITS));
    read(bytes, |publish: ExchangePublishIn| publish.into_messages(&name, LIMITS));
    read(bytes, |transaction: TransactionIn| transaction.into_parts(LIMITS));
    read(bytes, |lease: LeaseIn| Ok(lease));
    read(bytes, |settle: SettleIn| settle.outcome().and_then(|_| receipts(&settle.receipts.0)));
    read(bytes, |extend: ExtendIn| receipts(&extend.receipts.0));
    read(bytes, SelectIn::into_select);
    read(bytes, ReprioritiseIn::into_parts);
    read(bytes, |priority: PriorityIn| Ok(priority));
    read(bytes, |purge: PurgeIn| purge.checked());
    read(bytes, ReplayIn::into_parts);
    read(bytes, ExchangeIn::into_settings);
    read(bytes, |binding: BindingIn| binding.into_binding(Arc::clone(&name)));
    if let Ok(query) = std::str::from_utf8(bytes) {
        helpful(Params::parse(query).and_then(Params::into_browse));
        helpful(Params::parse(query).and_then(Params::into_queue_page));
        helpful(Params::parse(query).and_then(Params::into_delete_only));
        helpful(Params::parse(query).and_then(Params::into_timeout));
    }
    raw_message(bytes);
}

fn read<T: DeserializeOwned, U>(bytes: &[u8], meaning: impl FnOnce(T) -> Result<U, Problem>) {
    helpful(decode(bytes).and_then(meaning));
}

/// Decodes a raw message: lines of `name: value` up to one without a colon, then the body.
fn raw_message(bytes: &[u8]) {
    let mut headers = HeaderMap::new();
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..end], &rest[end + 1..]);
        rest = after;
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { break };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value)
            && headers.len() < 100
        {
            headers.append(name, value);
        }
    }
    let body = Bytes::copy_from_slice(rest);
    helpful(raw::for_queue(&headers, body.clone(), Target::default(), LIMITS));
    helpful(raw::for_exchange(&headers, body, LIMITS));
}

/// Asserts that a problem says what is wrong and what to do.
fn helpful<T>(result: Result<T, Problem>) {
    if let Err(problem) = result {
        assert!(problem.is_helpful(), "a problem has a code, a detail and a hint: {problem:?}");
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_request_panics() {
        overtake_corpus::check("http_body", super::request);
    }
}
