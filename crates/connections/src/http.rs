//! HTTP/1.1 connections, plain or under TLS.
//!
//! ```text
//! connection ─▶ guard (Host, Origin) ─▶ body (size without a login, speed) ─▶ routes ─▶ nosniff ─▶ answer
//! ```
//!
//! What holds for every route is done here, in front of all routers, so that no route can be without it.
//!
//! # Connections over the limit
//! A client that finds all connections taken is accepted all the same, for one request: a probe is answered, anything else is told
//! 503. There are few such places, and a new connection takes the place of the oldest.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use overtake_access::Peer;
use overtake_api::problem::Problem;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower_http::normalize_path::NormalizePath;

use crate::accept::{Accepting, Ended, Place, Protocol, Term, accept};
use crate::body::{Cut, Fate, Share, WITHOUT_LOGIN_MAX, Watched};
use crate::budget::Budget;
use crate::descriptors::Descriptors;
use crate::guard::Hosts;
use crate::patience::Impatient;
use crate::tls::{HANDSHAKE, Presented, common_name};

/// The routes, of which each is served with slashes behind its path, too: tools that join addresses from parts leave them there
/// (Flower asks for `/api/queues/`).
type Routes = NormalizePath<axum::Router>;

/// Connections over the limit that are accepted all the same.
pub const RESERVE: usize = 32;
/// How long a client may take to send the head of its request on a connection over the limit.
const RESERVE_HEADER_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of the head of a request (request line and headers) that are waited for. A longer one is answered with 431, unless all of it came at once: up to about twice as
/// much may be in the buffer.
const HEAD_MAX: usize = 64 << 10;
/// How long a client may take at least to go on with reading an answer.
const READING_MIN: Duration = Duration::from_secs(60);
/// Paths that are answered on connections over the limit.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/healthz"];

/// How HTTP is served.
pub struct Http {
    tls: Option<Presented>,
    http: http1::Builder,
    last: http1::Builder,
    shared: Arc<Shared>,
}

/// What all connections of a listener share.
struct Shared {
    routes: TowerToHyperService<Routes>,
    hosts: Hosts,
    budget: Budget,
    /// How long a client may pause within the body of a request.
    pause: Duration,
}

impl Http {
    /// Serves these routes under these host names, under TLS if certificates are given. A client must send the head of each request within
    /// `header_timeout`; an idle connection is closed after it, and a client that pauses for longer within a body is cut, too.
    #[must_use]
    pub fn new(
        routes: axum::Router,
        hosts: Hosts,
        tls: Option<Presented>,
        header_timeout: Duration,
        budget: Budget,
    ) -> Self {
        let builder = |timeout| {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(timeout).max_buf_size(HEAD_MAX);
            http
        };
        let (http, mut last) = (builder(header_timeout), builder(header_timeout.min(RESERVE_HEADER_TIMEOUT)));
        last.keep_alive(false);
        let routes = TowerToHyperService::new(NormalizePath::trim_trailing_slash(routes));
        Self { tls, http, last, shared: Arc::new(Shared { routes, hosts, budget, pause: header_timeout }) }
    }

    /// Accepts connections, at most `most` at a time, and no more than there are descriptors for.
    #[must_use]
    pub fn accept(self, listener: TcpListener, most: u32, descriptors: Descriptors, term: Term) -> Accepting {
        Box::pin(accept(listener, self, most, descriptors, term))
    }
}

impl Protocol for Http {
    const RESERVE: usize = RESERVE;

    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        place: Place,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), Ended>> + Send + use<> {
        let http = if place == Place::Reserve { self.last.clone() } else { self.http.clone() };
        let shared = Arc::clone(&self.shared);
        let peer = Peer::at(peer.ip());
        let tls = self.tls.as_ref().map(Presented::now);
        async move {
            let Some(tls) = tls else {
                return converse(http, stream, Guarded { shared, peer, place }, stop).await;
            };
            let secure = TlsAcceptor::from(tls).accept(stream);
            let secure = tokio::time::timeout(HANDSHAKE, secure);
            let stream = stop.run_until_cancelled(secure).await.ok_or("stopped")???;
            let certificates = stream.get_ref().1.peer_certificates();
            let shown = certificates.and_then(|all| common_name(all.first()?));
            let peer = peer.under_tls().with_certificate(shown.map(Arc::from));
            converse(http, stream, Guarded { shared, peer, place }, stop).await
        }
    }
}

/// The routes for requests that come by one connection.
struct Guarded {
    shared: Arc<Shared>,
    peer: Peer,
    place: Place,
}

impl Service<Request<Incoming>> for Guarded {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        let answer = self.refuse(&parts).map(IntoResponse::into_response);
        parts.extensions.insert(self.peer.clone());
        let (shared, peer) = (Arc::clone(&self.shared), self.peer.clone());
        Box::pin(async move {
            let mut answer = match answer {
                Some(answer) => answer,
                None => shared.answer(parts, body, &peer).await,
            };
            answer.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
            Ok(answer)
        })
    }
}

impl Guarded {
    /// What is wrong with a request whatever its path, or with its path for its place.
    fn refuse(&self, request: &Parts) -> Option<Problem> {
        if let Err(problem) = self.shared.hosts.check(request, &self.peer) {
            return Some(problem);
        }
        let is_probe = PROBES.contains(&request.uri.path().trim_end_matches('/'));
        (self.place == Place::Reserve && !is_probe).then(|| {
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "too-many-connections",
                "the broker has no room for another connection over HTTP",
                "close connections that are not needed, over HTTP and AMQP, and try again; or raise http.max_connections (--http-max-connections) and, where fewer are allowed, the \
                 number of files that the process may open (`ulimit -n`, `LimitNOFILE=`)",
            )
        })
    }
}

impl Shared {
    async fn answer(&self, parts: Parts, body: Incoming, peer: &Peer) -> Response {
        if body.is_end_stream() {
            return self.routed(Request::from_parts(parts, Body::empty())).await;
        }
        let is_unknown = peer.shows(&parts.method, &parts.headers).is_none();
        let most = is_unknown.then_some(WITHOUT_LOGIN_MAX);
        if most.is_some_and(|most| body.size_hint().lower() > most) {
            return Cut::Large.problem().into_response();
        }
        let fate = Fate::default();
        // Until the request is answered its body is here, or on its way through the broker.
        let share = Share::new(Mutex::new(self.budget.hold()));
        let body = Watched::new(body, self.pause, most, Arc::clone(&share), fate.clone());
        let answer = self.routed(Request::from_parts(parts, Body::new(body))).await;
        drop(share);
        match fate.cut() {
            None => answer,
            Some(cut) => {
                let mut answer = cut.problem().into_response();
                answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                answer
            }
        }
    }

    async fn routed(&self, request: Request<Body>) -> Response {
        let Ok(answer) = self.routes.call(request).await;
        answer
    }
}

/// Answers what is asked on one connection; once it is to stop, what was asked before.
async fn converse(
    http: http1::Builder,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    guarded: Guarded,
    stop: CancellationToken,
) -> Result<(), Ended> {
    let stream = Impatient::new(stream, guarded.shared.pause.max(READING_MIN));
    let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), guarded));
    tokio::select! {
        ended = connection.as_mut() => return Ok(ended?),
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    Ok(connection.await?)
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use axum::Router;
    use axum::body::Bytes;
    use axum::routing::{any, get, post};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    use super::*;

    const HERE: Peer = Peer::at(IpAddr::V4(Ipv4Addr::LOCALHOST));
    const PAUSE: Duration = Duration::from_secs(30);
    /// Anybody's: it is not looked at here, only whether there is one.
    const LOGIN: &str = "Authorization: Bearer x\r\n";

    fn http() -> Http {
        http_with(Budget::new(1 << 30))
    }

    fn http_with(budget: Budget) -> Http {
        let routes = Router::new()
            .route("/livez", get(|| async { "alive" }))
            .route("/length", post(|body: Bytes| async move { body.len().to_string() }))
            .route("/large", get(|| async { vec![b'x'; 8 << 20] }))
            .fallback(any(|| async { (StatusCode::NOT_FOUND, "nothing") }));
        Http::new(routes, Hosts::default(), None, PAUSE, budget)
    }

    /// The client's end of a connection that is served in a task.
    fn connect(http: &Http, place: Place) -> DuplexStream {
        let (near, far) = tokio::io::duplex(64 << 10);
        let guarded = Guarded { shared: Arc::clone(&http.shared), peer: HERE, place };
        let builder = if place == Place::Own { http.http.clone() } else { http.last.clone() };
        tokio::spawn(converse(builder, far, guarded, CancellationToken::new()));
        near
    }

    async fn ask(stream: &mut DuplexStream, request: &str) -> String {
        stream.write_all(request.as_bytes()).await.expect("it reads");
        answer(stream).await
    }

    /// Everything until the other side closes.
    async fn answer(stream: &mut DuplexStream) -> String {
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("it ends");
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_for_which_there_is_no_memory_waits_and_is_refused_if_that_does_not_help() {
        let budget = Budget::new(10_000);
        let http = http_with(budget.clone());
        let head =
            "POST /length HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 8000\r\n\r\n";
        for is_given_back in [false, true] {
            let mut others = budget.hold();
            others.set(10_000);
            let mut stream = connect(&http, Place::Own);
            stream.write_all(head.as_bytes()).await.expect("it reads");
            stream.write_all(&[b'x'; 6_000]).await.expect("it reads");
            // Half of it all is its share.
            while budget.held().bytes < 16_000 {
                tokio::task::yield_now().await;
            }
            stream.write_all(&[b'x'; 2_000]).await.expect("there is room on the way");
            if is_given_back {
                others.set(0);
            }
            let said = answer(&mut stream).await;
            match is_given_back {
                false => {
                    assert!(said.starts_with("HTTP/1.1 503") && said.contains("memory-used-up"), "{said}")
                }
                true => assert!(said.starts_with("HTTP/1.1 200") && said.ends_with("8000"), "{said}"),
            }
        }
        let held = budget.held();
        assert_eq!((held.bytes, held.refused), (0, 1), "{held:?}");
    }

    #[tokio::test]
    async fn a_head_is_taken_up_to_its_limit_and_no_further() {
        let http = http();
        for (len, expect) in [(HEAD_MAX - 200, "HTTP/1.1 200"), (HEAD_MAX, "HTTP/1.1 431")] {
            let mut stream = connect(&http, Place::Own);
            let header = "x".repeat(len);
            let head =
                format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {header}\r\n\r\n");
            // What is too long is not read to its end.
            let _ = stream.write_all(head.as_bytes()).await;
            let said = answer(&mut stream).await;
            assert!(said.starts_with(expect), "{len}: {said}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_is_cut_after_a_pause_and_not_before() {
        let http = http();
        for login in ["", LOGIN] {
            let head =
                format!("POST /length HTTP/1.1\r\nHost: localhost\r\n{login}Content-Length: 4000\r\n\r\nx");
            let begun = tokio::time::Instant::now();
            let answer = ask(&mut connect(&http, Place::Own), &head).await;
            assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("body-too-slow"), "{answer}");
            assert!(answer.contains("x-content-type-options: nosniff"), "{answer}");
            assert!(begun.elapsed() >= PAUSE, "{:?}", begun.elapsed());
        }
    }

    /// Lets the server do what there is to do, then time pass, then the server do what it then does.
    async fn pass(seconds: u64) {
        for time in [0, seconds] {
            tokio::time::advance(Duration::from_secs(time)).await;
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_byte_now_and_then_does_not_hold_a_connection_and_a_slow_upload_is_finished() {
        let http = http();
        let head = format!(
            "POST /length HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{LOGIN}Content-Length: 600000\r\n\r\n"
        );
        let mut stream = connect(&http, Place::Own);
        stream.write_all(head.as_bytes()).await.expect("it reads");
        let mut seconds = 0;
        while stream.write_all(b"x").await.is_ok() {
            pass(1).await;
            seconds += 1;
            assert!(seconds < 60, "the floor is far above a byte per second");
        }
        assert!(seconds >= 25, "{seconds} s");

        let mut stream = connect(&http, Place::Own);
        stream.write_all(head.as_bytes()).await.expect("it reads");
        for _ in 0..20 {
            pass(25).await;
            stream.write_all(&[b'x'; 30_000]).await.expect("it goes on");
        }
        let answer = answer(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("600000"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_does_not_hold_a_connection() {
        let http = http();
        let (mut near, far) = tokio::io::duplex(64 << 10);
        let guarded = Guarded { shared: Arc::clone(&http.shared), peer: HERE, place: Place::Own };
        let serving = tokio::spawn(converse(http.http.clone(), far, guarded, CancellationToken::new()));
        near.write_all(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("it reads");
        let ended = serving.await.expect("it does not panic").expect_err("it gives up");
        assert!(format!("{ended:?}").contains("does not read the answer"), "{ended:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_login_a_body_is_short() {
        let http = http();
        let most = usize::try_from(WITHOUT_LOGIN_MAX).expect("it fits");
        let of = |login: &str, length: usize| {
            format!(
                "POST /length HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{login}Content-Length: {length}\r\n\r\n"
            )
        };
        let said = ask(&mut connect(&http, Place::Own), &of("", 64 << 20)).await;
        assert!(
            said.starts_with("HTTP/1.1 413") && said.contains("request-too-large"),
            "nothing was sent of it: {said}"
        );
        let digest = ask(&mut connect(&http, Place::Own), &of("Authorization: Digest x\r\n", most + 1)).await;
        assert!(digest.starts_with("HTTP/1.1 413"), "{digest}");
        for (login, length, expected) in [("", most, "200"), (LOGIN, most + 1, "200")] {
            let whole = of(login, length) + &"x".repeat(length);
            let answer = ask(&mut connect(&http, Place::Own), &whole).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{length}: {answer}");
        }
        let chunk = format!("{most:x}\r\n{}\r\n1\r\nx\r\n0\r\n\r\n", "x".repeat(most));
        let head =
            "POST /length HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        let chunked = ask(&mut connect(&http, Place::Own), &(head + &chunk)).await;
        assert!(chunked.starts_with("HTTP/1.1 413"), "{chunked}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_is_not_finished_and_a_connection_that_is_idle_end() {
        let http = http();
        for said in
            ["", "GET /livez HTTP/1.1\r\nHost: local", "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"]
        {
            let begun = tokio::time::Instant::now();
            ask(&mut connect(&http, Place::Own), said).await;
            assert!((PAUSE..2 * PAUSE).contains(&begun.elapsed()), "{said:?} {:?}", begun.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn whatever_is_answered_is_not_to_be_guessed_at() {
        let http = http();
        for (request, status) in [
            ("GET /livez HTTP/1.1\r\nHost: localhost\r\n", "200"),
            ("GET /nothing HTTP/1.1\r\nHost: localhost\r\n", "404"),
            ("DELETE /livez HTTP/1.1\r\nHost: localhost\r\n", "405"),
            ("GET /livez HTTP/1.1\r\nHost: example.com\r\n", "421"),
            ("GET /livez HTTP/1.1\r\nHost: localhost\r\nOrigin: https://example.com\r\n", "403"),
            ("GET /livez HTTP/1.1\r\n", "400"),
            ("GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", "400"),
        ] {
            let answer =
                ask(&mut connect(&http, Place::Own), &format!("{request}Connection: close\r\n\r\n")).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}{answer}");
            assert!(answer.contains("x-content-type-options: nosniff"), "{request}{answer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn on_a_connection_over_the_limit_only_probes_are_answered_and_once() {
        let http = http();
        for (path, status) in [("/livez", "200"), ("/livez/", "200"), ("/length", "503"), ("/", "503")] {
            let request = format!("GET {path} HTTP/1.1\r\nHost: 10.0.0.7:15672\r\n\r\n");
            let answer = ask(&mut connect(&http, Place::Reserve), &request).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path} {answer}");
            assert!(status != "503" || answer.contains("too-many-connections"), "{answer}");
        }
        let begun = tokio::time::Instant::now();
        ask(&mut connect(&http, Place::Reserve), "GET /livez HT").await;
        assert!(begun.elapsed() < 2 * RESERVE_HEADER_TIMEOUT, "{:?}", begun.elapsed());
    }

    /// Over sockets: reads the head of an answer, and `length` bytes behind it.
    async fn over_tcp(stream: &mut TcpStream, path: &str, length: usize) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = Vec::new();
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            answer.push(stream.read_u8().await.expect("an answer"));
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body).await.expect("a body");
        String::from_utf8(answer).expect("text")
    }

    async fn listen(most: u32, descriptors: &Descriptors) -> (SocketAddr, Term) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let (address, term) = (listener.local_addr().expect("an address"), Term::default());
        tokio::spawn(http().accept(listener, most, descriptors.clone(), term.clone()));
        (address, term)
    }

    #[tokio::test]
    async fn probes_are_answered_when_all_connections_are_taken() {
        for (most, descriptors) in [(3, 100), (100, 3)] {
            let descriptors = Descriptors::new(descriptors);
            let (address, _term) = listen(most, &descriptors).await;
            let mut held = Vec::new();
            for _ in 0..3 {
                let mut stream = TcpStream::connect(address).await.expect("it accepts");
                assert!(over_tcp(&mut stream, "/livez", 5).await.starts_with("HTTP/1.1 200"));
                held.push(stream);
            }
            assert_eq!(descriptors.refused(), 0);
            let mut probe = TcpStream::connect(address).await.expect("it accepts");
            assert!(over_tcp(&mut probe, "/livez", 5).await.starts_with("HTTP/1.1 200"));
            let mut other = TcpStream::connect(address).await.expect("it accepts");
            assert!(over_tcp(&mut other, "/length", 0).await.starts_with("HTTP/1.1 503"));
            assert_eq!(descriptors.refused(), 2);
            // Those who hold the reserve and say nothing make room for who comes later.
            let mut silent = Vec::new();
            for _ in 0..2 * RESERVE {
                silent.push(TcpStream::connect(address).await.expect("it accepts"));
            }
            let mut probe = TcpStream::connect(address).await.expect("it accepts");
            assert!(over_tcp(&mut probe, "/livez", 5).await.starts_with("HTTP/1.1 200"));
            assert_eq!(silent[0].read(&mut [0]).await.ok().unwrap_or_default(), 0, "the oldest was ended");
            // Who is within the limit is served as before.
            assert!(over_tcp(&mut held[0], "/livez", 5).await.starts_with("HTTP/1.1 200"));
        }
    }
}
