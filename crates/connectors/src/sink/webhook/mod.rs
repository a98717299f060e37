//! An HTTP webhook: one POST for each message, in order.
//!
//! | answer | means |
//! |---|---|
//! | 2xx | accepted |
//! | 400, 413, 415, 422, or what [`Webhook::refused`] says | refused for good: dead-lettered |
//! | 410 | the receiver is gone: the endpoint pauses (Standard Webhooks) |
//! | 429, or 503, with `Retry-After` or without | busy: the lane is left alone for so long |
//! | anything else | failed: tried again |
//!
//! Redirects are not followed: where a message goes is what the endpoint says.

pub(super) mod format;
mod link;
mod signature;

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use overtake_peer::{Address, Login, MASK, Secret, Text, Tls, Vault, parse};
use rustls::ClientConfig;
use serde::{Deserialize, Serialize};
use url::Url;

use self::link::WebhookLink;
use self::signature::SigningKey;
use super::{Link, LinkError, Sink, Work};
use crate::outgoing::Outgoing;

/// Statuses that mean that this message will never be taken, where nothing else is said.
const REFUSED: [u16; 4] = [400, 413, 415, 422];

/// An HTTP webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Webhook {
    /// Where to: `http://` or `https://`; as a secret if who knows it may post.
    pub url: Text,
    /// How a message looks.
    #[serde(skip_serializing_if = "is_raw")]
    pub format: WebhookFormat,
    /// Signs each request as [Standard Webhooks](https://www.standardwebhooks.com) have it: HMAC-SHA256. `whsec_` and base64, or any text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signing_key: Option<Secret>,
    /// Goes in `Authorization: Bearer …`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token: Option<Secret>,
    /// Further headers of each request; those that are secrets by reference.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Text>,
    /// The `source` of CloudEvents; by default `/vhosts/VHOST/queues/QUEUE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The `type` of CloudEvents for messages that have no property `type`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub event_type: String,
    /// Statuses that mean that this message will never be taken; by default 400, 413, 415 and 422.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<Vec<u16>>,
    /// Under `https://`.
    #[serde(skip_serializing_if = "Tls::is_plain")]
    pub tls: Tls,
}

/// How a message looks in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookFormat {
    /// Its body as it is; what is said of it in headers `overtake-…`.
    #[default]
    Raw,
    /// CloudEvents 1.0, HTTP binary content mode: its body as it is, attributes in headers `ce-…`.
    Cloudevents,
    /// CloudEvents 1.0, structured content mode: JSON around it.
    CloudeventsJson,
}

fn is_raw(format: &WebhookFormat) -> bool {
    *format == WebhookFormat::Raw
}

/// A webhook once its settings are read, but for its secrets: those are read for each connection, and may be changed without a restart.
pub(crate) struct WebhookSink {
    url: Text,
    vault: Vault,
    pub(super) format: WebhookFormat,
    pub(super) source: String,
    pub(super) event_type: String,
    headers: Vec<(HeaderName, Text)>,
    pub(super) refused: Vec<u16>,
    signing_key: Option<Secret>,
    bearer_token: Option<Secret>,
    tls: Option<Arc<ClientConfig>>,
}

/// Where requests go.
pub(crate) struct Target {
    pub(super) url: Url,
    pub(super) address: Address,
}

impl Target {
    fn of(vault: Vault, url: &str) -> Result<Self, String> {
        let schemes = [("http", 80, false), ("https", 443, true)];
        let (url, address) = parse(vault, url, &schemes, Login::InHeaders)?;
        Ok(Self { url, address })
    }
}

impl Webhook {
    /// # Errors
    /// What is wrong with it, as a phrase.
    pub(crate) fn sink(&self, vault: Vault, vhost: &str, queue: &str) -> Result<Arc<WebhookSink>, String> {
        let is_secure = match &self.url {
            Text::Plain(url) => Target::of(vault, url)?.address.is_secure,
            Text::Secret(secret) => vault.check("url", secret).map(|()| true)?,
        };
        for (key, secret) in [("signing_key", &self.signing_key), ("bearer_token", &self.bearer_token)] {
            secret.iter().try_for_each(|secret| vault.check(key, secret))?;
        }
        let tls = self.tls.client(vault, is_secure)?;
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            let header =
                HeaderName::try_from(name).map_err(|_| format!("`{name}` is no name of a header"))?;
            match value {
                Text::Plain(text) if text == MASK => {
                    return Err(format!(
                        "`headers.{name}`: {MASK} stands for a value that is not shown: say the value, or better where it is, as {}",
                        vault.forms()
                    ));
                }
                Text::Plain(text) => drop(header_value(&header, text)?),
                Text::Secret(secret) => vault.check(&format!("headers.{name}"), secret)?,
            }
            headers.push((header, value.clone()));
        }
        let source = self.source.clone().unwrap_or_else(|| default_source(vhost, queue));
        let event_type = if self.event_type.is_empty() { "overtake.message" } else { &self.event_type };
        Ok(Arc::new(WebhookSink {
            url: self.url.clone(),
            vault,
            format: self.format,
            source,
            event_type: event_type.to_owned(),
            headers,
            refused: self.refused.clone().unwrap_or_else(|| REFUSED.to_vec()),
            signing_key: self.signing_key.clone(),
            bearer_token: self.bearer_token.clone(),
            tls,
        }))
    }
}

fn header_value(name: &HeaderName, text: &str) -> Result<HeaderValue, String> {
    let value = HeaderValue::try_from(text);
    let mut value = value.map_err(|_| format!("the header `{name}` cannot say that"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// What a URI may hold of a path, and no more.
fn default_source(vhost: &str, queue: &str) -> String {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    format!("/vhosts/{}/queues/{}", encode(vhost), encode(queue))
}

/// Shares what connections have in common.
#[derive(Clone)]
pub(crate) struct SharedSink(pub(crate) Arc<WebhookSink>);

impl Sink for SharedSink {
    fn left_out(&self, message: &Outgoing) -> Vec<String> {
        format::left_out(&self.0, message)
    }

    fn connect(&self) -> Work<'_, Result<Box<dyn Link>, LinkError>> {
        Box::pin(async {
            let sink = &self.0;
            let target = Target::of(sink.vault, &sink.url.read()?)?;
            let key =
                sink.signing_key.as_ref().map(|secret| secret.read().map(|text| SigningKey::new(&text)));
            let key = key.transpose()?;
            let mut headers = HeaderMap::new();
            for (name, text) in &sink.headers {
                headers.insert(name, header_value(name, &text.read()?)?);
            }
            if let Some(secret) = &sink.bearer_token {
                let value = HeaderValue::try_from(format!("Bearer {}", secret.read()?));
                let mut value =
                    value.map_err(|_| "`bearer_token` has characters that no header may have".to_owned())?;
                value.set_sensitive(true);
                headers.insert(hyper::header::AUTHORIZATION, value);
            }
            let tls = sink.tls.clone().filter(|_| target.address.is_secure);
            let link = WebhookLink::connect(Arc::clone(sink), target, tls, key, headers).await?;
            Ok(Box::new(link) as Box<dyn Link>)
        })
    }
}
