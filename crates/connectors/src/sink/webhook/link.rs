//! One connection to a webhook: a request, its answer, the next request.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::fmt::rfc2822;
use overtake_forward::Answer;
use overtake_lane::Time;
use rustls::ClientConfig;
use tokio::task::JoinHandle;

use super::signature::SigningKey;
use super::{Target, WebhookSink, format};
use crate::outbox::Outbox;
use crate::sink::{Link, LinkError, Work};

/// Longest answer that is read, bytes.
const ANSWER_MAX: usize = 64 << 10;
/// So long a receiver is left alone that is busy and does not say for how long, ms.
const BUSY_MS: u64 = 1_000;
/// Nobody is left alone for longer, ms, whatever it says.
const BUSY_MS_MAX: u64 = 86_400_000;

pub(super) struct WebhookLink {
    sink: Arc<WebhookSink>,
    target: Target,
    tls: Option<Arc<ClientConfig>>,
    key: Option<SigningKey>,
    headers: HeaderMap,
    http: SendRequest<Full<Bytes>>,
    connection: JoinHandle<()>,
}

impl Drop for WebhookLink {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl WebhookLink {
    pub(super) async fn connect(
        sink: Arc<WebhookSink>,
        target: Target,
        tls: Option<Arc<ClientConfig>>,
        key: Option<SigningKey>,
        mut headers: HeaderMap,
    ) -> Result<Self, LinkError> {
        headers.entry(header::HOST).or_insert_with(|| {
            HeaderValue::from_str(&target.url[url::Position::BeforeHost..url::Position::AfterPort])
                .expect("the host of a URL is ASCII")
        });
        headers
            .entry(header::USER_AGENT)
            .or_insert(HeaderValue::from_static(concat!("overtake/", env!("CARGO_PKG_VERSION"))));
        let (http, connection) = open(&target, tls.clone()).await?;
        Ok(Self { sink, target, tls, key, headers, http, connection })
    }

    /// A connection that takes a request: receivers close those that were idle for a while.
    async fn ready(&mut self) -> Result<(), LinkError> {
        if self.http.ready().await.is_err() {
            self.connection.abort();
            (self.http, self.connection) = open(&self.target, self.tls.clone()).await?;
        }
        Ok(())
    }

    fn request(&self, outbox: &Outbox<'_>, at: usize) -> Request<Full<Bytes>> {
        let message = outbox.get(at);
        let mut headers = self.headers.clone();
        let body = format::write(&self.sink, message, &mut headers);
        if let Some(key) = &self.key {
            let (id, seconds) = (message.id(), outbox.now().0 / 1_000);
            let mut put = |name, value: &str| {
                HeaderValue::from_str(value).map(|value| headers.insert(name, value)).is_ok()
            };
            let signature = key.sign(&id, seconds, &body);
            put("webhook-id", &id);
            put("webhook-timestamp", &seconds.to_string());
            put("webhook-signature", &signature);
        }
        let mut request = Request::new(Full::from(body));
        *request.method_mut() = hyper::Method::POST;
        let path = &self.target.url[url::Position::BeforePath..url::Position::AfterQuery];
        *request.uri_mut() = path.parse().expect("the path of a URL is that of a request");
        *request.headers_mut() = headers;
        request
    }

    async fn post(&mut self, outbox: &Outbox<'_>, at: usize) -> Result<Answer, LinkError> {
        let request = self.request(outbox, at);
        let bytes = len(&request);
        let lost = |error: hyper::Error| {
            LinkError::Lost(format!("{}: {}", self.target.address.authority(), told(&error)))
        };
        let response = self.http.send_request(request).await.map_err(lost)?;
        let (head, body) = response.into_parts();
        // Read whole, so that the connection can be used again; one that says too much is not.
        let said = match Limited::new(body, ANSWER_MAX).collect().await {
            Ok(body) => excerpt(&body.to_bytes()),
            Err(_) => {
                self.connection.abort();
                String::new()
            }
        };
        let response = Response::from_parts(head, ());
        judge(&self.sink.refused, &response, &said, outbox.now(), bytes)
    }
}

impl Link for WebhookLink {
    fn send<'a>(&'a mut self, outbox: &'a mut Outbox<'_>) -> Work<'a, Result<(), LinkError>> {
        Box::pin(async move {
            while let Some(at) = outbox.next() {
                let ready = self.ready().await;
                let answer = match ready {
                    Ok(()) => self.post(outbox, at).await,
                    Err(lost) => return Err(outbox.not_sent(at, lost)),
                };
                match answer {
                    Ok(answer) => outbox.answer(at, answer),
                    Err(gone @ LinkError::Gone(_)) => return Err(outbox.not_sent(at, gone)),
                    Err(lost) => return Err(lost),
                }
            }
            Ok(())
        })
    }
}

async fn open(
    target: &Target,
    tls: Option<Arc<ClientConfig>>,
) -> Result<(SendRequest<Full<Bytes>>, JoinHandle<()>), LinkError> {
    let socket = target.address.connect().await?;
    match tls {
        Some(config) => begin(overtake_peer::begin(config, &target.address.host, socket).await?).await,
        None => begin(socket).await,
    }
}

async fn begin(
    socket: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
) -> Result<(SendRequest<Full<Bytes>>, JoinHandle<()>), LinkError> {
    let (http, connection) = handshake(TokioIo::new(socket)).await.map_err(|error| told(&error))?;
    Ok((http, tokio::spawn(async { drop(connection.await) })))
}

/// What an answer means.
///
/// # Errors
/// The receiver is gone.
fn judge(
    refused: &[u16],
    response: &Response<()>,
    said: &str,
    now: Time,
    bytes: u64,
) -> Result<Answer, LinkError> {
    let status = response.status();
    let why =
        if said.is_empty() { format!("it answers {status}") } else { format!("it answers {status}: {said}") };
    Ok(match status {
        _ if status.is_success() => Answer::Accepted { bytes },
        StatusCode::GONE => return Err(LinkError::Gone(why)),
        _ if refused.contains(&status.as_u16()) => Answer::Refused { why: why.into() },
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            let asked = response.headers().get(header::RETRY_AFTER).and_then(|value| retry_after(value, now));
            let busy_ms = asked.or((status == StatusCode::TOO_MANY_REQUESTS).then_some(BUSY_MS));
            Answer::Failed { busy_ms, why: why.into() }
        }
        _ if status.is_redirection() => {
            let why = format!("{why}; redirects are not followed: name the address it leads to");
            Answer::Failed { busy_ms: None, why: why.into() }
        }
        _ => Answer::Failed { busy_ms: None, why: why.into() },
    })
}

/// Seconds, or a date (RFC 9110, 10.2.3).
fn retry_after(value: &HeaderValue, now: Time) -> Option<u64> {
    let text = value.to_str().ok()?.trim();
    let ms = match text.parse::<u64>() {
        Ok(seconds) => seconds.saturating_mul(1_000),
        Err(_) => {
            let at = rfc2822::parse(text).ok()?.timestamp().as_millisecond();
            u64::try_from(at).unwrap_or(0).saturating_sub(now.0)
        }
    };
    Some(ms.min(BUSY_MS_MAX))
}

/// Bytes of a request over the line, about.
fn len(request: &Request<Full<Bytes>>) -> u64 {
    use hyper::body::Body as _;
    let headers: usize =
        request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    let line = request.uri().path().len() + 20;
    (headers + line) as u64 + request.body().size_hint().lower()
}

fn told(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

/// What of an answer can be told in a line.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let readable = text.chars().map(|char| if char.is_control() || char == '\u{fffd}' { ' ' } else { char });
    readable.take(200).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(784_111_770_000);

    fn judged(status: u16, retry_after: Option<&str>) -> Result<Answer, LinkError> {
        let mut response = Response::builder().status(status);
        if let Some(value) = retry_after {
            response = response.header("retry-after", value);
        }
        judge(&super::super::REFUSED, &response.body(()).expect("a response"), "no", NOW, 9)
    }

    #[test]
    fn an_answer_means_what_the_table_says() {
        let why = |text: &str| text.into();
        assert_eq!(judged(204, None), Ok(Answer::Accepted { bytes: 9 }));
        assert_eq!(
            judged(422, None),
            Ok(Answer::Refused { why: why("it answers 422 Unprocessable Entity: no") })
        );
        assert_eq!(judged(410, None), Err(LinkError::Gone("it answers 410 Gone: no".to_owned())));
        let busy = |answer| {
            if let Ok(Answer::Failed { busy_ms, .. }) = answer { busy_ms } else { panic!("{answer:?}") }
        };
        assert_eq!(busy(judged(429, Some("7"))), Some(7_000));
        assert_eq!(busy(judged(429, None)), Some(BUSY_MS));
        assert_eq!(busy(judged(503, Some("Sun, 06 Nov 1994 08:49:37 GMT"))), Some(7_000));
        assert_eq!(busy(judged(503, Some("99999999999999999999"))), None);
        for status in [404, 500, 302, 503] {
            assert_eq!(busy(judged(status, None)), None, "{status}");
        }
    }
}
