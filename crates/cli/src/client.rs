//! Talking to a broker: one request, one answer, in JSON; or one that is long, piece by piece.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::http::request;
use hyper::{Method, Request, StatusCode, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self};
use hyper_util::rt::TokioExecutor;
use overtake_peer::{tls_fault, tls_reason};
use overtake_redact::json_reason;
use rustls::ClientConfig;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::address::{Base, query};
use crate::args::{DEFAULT_VHOST, Global};
use crate::connector::Connector;
use crate::failure::{Exit, Failure};
use crate::tls;

/// Longer than the broker takes for anything it was asked to take its time for.
const DAY: Duration = Duration::from_secs(25 * 60 * 60);
/// How long making a connection may take.
const CONNECT: Duration = Duration::from_secs(5);

/// A client of one broker. Clones share its connections.
#[derive(Clone)]
pub(crate) struct Client {
    base: Base,
    login: Option<HeaderValue>,
    vhost: String,
    timeout: Duration,
    connector: Connector,
    tls: ClientConfig,
    http: legacy::Client<HttpsConnector<Connector>, Full<Bytes>>,
}

/// What the broker says.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: StatusCode,
    /// The body, null when there is none.
    pub(crate) body: Value,
}

/// An error as the broker tells it: `application/problem+json`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    title: String,
    detail: Option<String>,
    code: Option<String>,
    hint: Option<String>,
    key: Option<String>,
    /// Of the management API, which tells errors as RabbitMQ does: a word, and why.
    error: Option<String>,
    reason: Option<String>,
}

impl Client {
    /// A client of the broker that was named.
    pub(crate) fn new(global: &Global) -> Result<Self, Failure> {
        let base = Base::parse(&global.url)?;
        let login = global.login.header(&base)?;
        Self::of(base, login, global)
    }

    /// A client of another broker than the one that was named, by what else was said: authorities, virtual host, patience.
    pub(crate) fn of(base: Base, login: Option<HeaderValue>, global: &Global) -> Result<Self, Failure> {
        let mut http = HttpConnector::new();
        http.set_connect_timeout(Some(CONNECT));
        http.set_nodelay(true);
        http.enforce_http(false);
        let connector = Connector::new(http);
        let tls = tls::config(base.is_secure(), global.ca_file.as_deref())?;
        let http = with_connector(connector.clone(), tls.clone());
        let vhost = global.vhost().to_owned();
        Ok(Self { base, login, vhost, timeout: Duration::from_millis(global.timeout), connector, tls, http })
    }

    /// A client with connections of its own, on which nothing more is asked once `over` resolves: what the broker makes wait is over then, and what it has
    /// answered before still comes.
    pub(crate) fn until<F>(&self, over: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + Sync + 'static,
    {
        let connector = self.connector.clone().until(over);
        Self { http: with_connector(connector.clone(), self.tls.clone()), connector, ..self.clone() }
    }

    /// The virtual host in which queues and exchanges are meant.
    pub(crate) fn vhost(&self) -> &str {
        &self.vhost
    }

    /// Where the broker is.
    pub(crate) fn url(&self) -> &str {
        self.base.as_str()
    }

    /// Asks; a refusal is a failure.
    pub(crate) async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        self.ask_within(self.timeout, method, path, body).await
    }

    /// Asks something that may wait at the broker for so long.
    pub(crate) async fn ask_waiting(
        &self,
        wait_ms: u64,
        path: &str,
        body: &Value,
    ) -> Result<Answer, Failure> {
        self.ask_within(
            self.timeout.saturating_add(Duration::from_millis(wait_ms)),
            Method::POST,
            path,
            Some(body),
        )
        .await
    }

    /// `GET` of something that may wait at the broker for so long.
    pub(crate) async fn get_waiting(&self, wait_ms: u64, path: &str) -> Result<Value, Failure> {
        let within = self.timeout.saturating_add(Duration::from_millis(wait_ms));
        self.ask_within(within, Method::GET, path, None).await.map(|answer| answer.body)
    }

    /// `GET`.
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.ask(Method::GET, path, None).await.map(|answer| answer.body)
    }

    /// `GET` of something whose form is known.
    pub(crate) async fn read<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        let (_, bytes) = self.accepted(self.timeout, Method::GET, path, None).await?;
        self.parse(&bytes)
    }

    /// `POST`.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        self.ask(Method::POST, path, Some(body)).await.map(|answer| answer.body)
    }

    /// `POST` of nothing, whose answer may come late: as long as the broker takes.
    pub(crate) async fn post_for_long(&self, path: &str) -> Result<Value, Failure> {
        self.ask_within(DAY, Method::POST, path, None).await.map(|answer| answer.body)
    }

    /// Asks and tells what came, whatever it is: text that is no JSON is a JSON text.
    pub(crate) async fn look(&self, path: &str) -> Result<Answer, Failure> {
        let (status, bytes) = self.exchange(self.timeout, Method::GET, path, None).await?;
        let text = || Value::from(String::from_utf8_lossy(&bytes).trim());
        Ok(Answer { status, body: serde_json::from_slice(&bytes).unwrap_or_else(|_| text()) })
    }

    /// `GET` of something long, piece by piece. A refusal is a failure.
    pub(crate) async fn download(&self, path: &str) -> Result<Download<'_>, Failure> {
        let request = self.request(Method::GET, path).body(Full::default());
        let request =
            request.map_err(|error| Failure::usage(format!("no request can be made of this: {error}")))?;
        let answered = async { self.http.request(request).await.map_err(|error| self.unreachable(&error)) };
        let response = self.within(self.timeout, answered).await?;
        let (status, body) = (response.status(), response.into_body());
        if status.is_success() {
            return Ok(Download { client: self, body });
        }
        let collected = async { body.collect().await.map_err(|error| self.unreachable(&error)) };
        let bytes = self.within(self.timeout, collected).await?.to_bytes();
        Err(refused(status, &bytes).declined())
    }

    /// By whoever asks, in the virtual host that is meant.
    fn request(&self, method: Method, path: &str) -> request::Builder {
        let is_placed = self.vhost != DEFAULT_VHOST && overtake_http::is_placed(path);
        let place =
            if is_placed { query(&[("vhost".to_owned(), self.vhost.clone())]) } else { String::new() };
        let place = if path.contains('?') { place.replacen('?', "&", 1) } else { place };
        let mut request =
            Request::builder().method(method).uri(format!("{}{path}{place}", self.base.as_str()));
        if let (Some(headers), Some(login)) = (request.headers_mut(), &self.login) {
            headers.insert(header::AUTHORIZATION, login.clone());
        }
        request
    }

    async fn ask_within(
        &self,
        within: Duration,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let (status, bytes) = self.accepted(within, method, path, body).await?;
        let body = if bytes.is_empty() { Value::Null } else { self.parse(&bytes)? };
        Ok(Answer { status, body })
    }

    /// What the broker answers; a refusal is a failure.
    async fn accepted(
        &self,
        within: Duration,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        let (status, bytes) = self.exchange(within, method, path, body).await?;
        if status.is_success() {
            return Ok((status, bytes));
        }
        let failure = refused(status, &bytes);
        // Of a 5xx it is not known how far it came, but for a store that is full.
        let declined = status.is_client_error() || status == StatusCode::INSUFFICIENT_STORAGE;
        Err(if declined { failure.declined() } else { failure })
    }

    fn parse<T: DeserializeOwned>(&self, bytes: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(bytes).map_err(|error| {
            let what = if error.is_data() {
                format!("something else than was asked for: {}", json_reason(&error.to_string()))
            } else {
                "something that is not JSON".to_owned()
            };
            Failure::new(Exit::Error, format!("{} answered {what}", self.base.as_str()))
                .hint("is there an Overtake broker at this address?")
        })
    }

    async fn exchange(
        &self,
        within: Duration,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), Failure> {
        if names_nothing(path) {
            return Err(Failure::usage("a name or an id is empty").hint("give one; nothing was asked"));
        }
        let request = self.request(method, path).header(header::ACCEPT, "application/json");
        let request = match body {
            Some(body) => request
                .header(header::CONTENT_TYPE, "application/json")
                .body(Full::from(Bytes::from(body.to_string()))),
            None => request.body(Full::default()),
        };
        let request =
            request.map_err(|error| Failure::usage(format!("no request can be made of this: {error}")))?;
        let answered = async {
            let response = self.http.request(request).await.map_err(|error| self.unreachable(&error))?;
            let status = response.status();
            let body = response.into_body().collect().await.map_err(|error| self.unreachable(&error))?;
            Ok((status, body.to_bytes()))
        };
        self.within(within, answered).await
    }

    async fn within<T>(
        &self,
        within: Duration,
        answered: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::time::timeout(within, answered).await.unwrap_or_else(|_| {
            Err(Failure::new(Exit::Empty, format!("{} did not answer within {within:?}", self.base.as_str()))
                .hint("it is not known whether it did what was asked; wait longer with --timeout"))
        })
    }

    fn cut(&self, error: &(dyn Error + 'static)) -> Failure {
        let what = format!("{} cut its answer short: {}", self.base.as_str(), deepest(error));
        Failure::new(Exit::Error, what).hint(
            "it stopped, or its disk is short of room (`overtake health`); nothing of it was kept, try again",
        )
    }

    fn unreachable(&self, error: &(dyn Error + 'static)) -> Failure {
        let base = self.base.as_str();
        if chain(error).any(|error| error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse))
        {
            return Failure::new(Exit::Unreachable, format!("what listens at {base} does not speak HTTP"))
                .hint("is that the port of AMQP? The broker says at its start where it serves HTTP, 15672 by default");
        }
        let deepest = deepest(error);
        let what = format!("cannot reach the broker at {base}: {}", tls_reason(deepest));
        let failure = Failure::new(Exit::Unreachable, what);
        match tls_fault(deepest) {
            None => {
                failure.hint("start one with `overtake serve`, or say where it is with --url or OVERTAKE_URL")
            }
            Some(rustls::Error::InvalidCertificate(_)) => failure
                .hint("use a name that its certificate is for, and name who signed that with --ca-file"),
            Some(_) => {
                failure.hint("use the port that is served under TLS (--https), or http:// in the address")
            }
        }
    }
}

fn with_connector(
    connector: Connector,
    tls: ClientConfig,
) -> legacy::Client<HttpsConnector<Connector>, Full<Bytes>> {
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(connector);
    legacy::Client::builder(TokioExecutor::new()).build(connector)
}

fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let this = next?;
        next = this.source();
        Some(this)
    })
}

fn deepest<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    chain(error).last().unwrap_or(error)
}

/// Something long on its way.
pub(crate) struct Download<'a> {
    client: &'a Client,
    body: Incoming,
}

impl Download<'_> {
    /// The next piece; `None` at the end, as the broker meant it.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let client = self.client;
        loop {
            let frame = async { Ok(self.body.frame().await) };
            match client.within(client.timeout, frame).await? {
                None => return Ok(None),
                // What is no data, trailers, says nothing.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => return Ok(Some(data)),
                    Err(_) => continue,
                },
                Some(Err(error)) => return Err(client.cut(&error)),
            }
        }
    }
}

/// The failure a refusal is. The broker's own words and hint.
fn refused(status: StatusCode, bytes: &[u8]) -> Failure {
    let exit = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Exit::Denied,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => Exit::Unreachable,
        StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => Exit::Empty,
        _ => Exit::Error,
    };
    let Ok(problem) = serde_json::from_slice::<Problem>(bytes) else {
        let text = String::from_utf8_lossy(bytes);
        return Failure::new(
            exit,
            format!("the broker answers {status}: {}", crate::table::one_line(text.trim(), 200)),
        );
    };
    let word = problem.code.or(problem.error);
    let code = word.as_ref().map_or_else(String::new, |code| format!(" {code}"));
    let what = problem.detail.or(problem.reason).unwrap_or(problem.title);
    let key = problem.key.map(|key| format!("`{key}`")).filter(|key| !what.contains(key.as_str()));
    let key = key.map_or_else(String::new, |key| format!("{key}: "));
    let failure = Failure::new(exit, format!("{key}{what} ({}{code})", status.as_u16())).code(word);
    match problem.hint {
        Some(hint) if !hint.is_empty() => failure.hint(hint),
        _ => failure,
    }
}

/// Whether a segment of a path is empty: that of a name without a character, which would lead to another path.
fn names_nothing(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.split('/').skip(1).any(str::is_empty)
}
