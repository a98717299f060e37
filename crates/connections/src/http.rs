//! HTTP/1.1 connections, plain or under TLS.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use overtake_access::Peer;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower_http::normalize_path::NormalizePath;

use crate::accept::{Accepting, Ended, Protocol, Term, accept};
use crate::tls::{HANDSHAKE, Presented, common_name};

/// The routes, of which each is served with slashes behind its path, too: tools that join addresses from parts leave them there
/// (Flower asks for `/api/queues/`).
type Routes = NormalizePath<axum::Router>;

/// How HTTP is served.
pub struct Http {
    routes: Routes,
    tls: Option<Presented>,
    http: http1::Builder,
}

impl Http {
    /// Serves these routes, under TLS if certificates are given. A client must send the head of each request within `header_timeout`; an
    /// idle connection is closed after it, too.
    #[must_use]
    pub fn new(routes: axum::Router, tls: Option<Presented>, header_timeout: Duration) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(header_timeout);
        let routes = NormalizePath::trim_trailing_slash(routes);
        Self { routes, tls, http }
    }

    /// Accepts connections, at most `most` at a time.
    #[must_use]
    pub fn accept(self, listener: TcpListener, most: u32, term: Term) -> Accepting {
        Box::pin(accept(listener, self, most, term))
    }
}

impl Protocol for Http {
    fn serve(
        &self,
        stream: TcpStream,
        peer: SocketAddr,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), Ended>> + Send + use<> {
        let http = self.http.clone();
        let routes = TowerToHyperService::new(self.routes.clone());
        let peer = Peer::at(peer.ip());
        let tls = self.tls.as_ref().map(Presented::now);
        async move {
            let Some(tls) = tls else {
                return converse(http, TokioIo::new(stream), From { routes, peer }, stop).await;
            };
            let secure = TlsAcceptor::from(tls).accept(stream);
            let secure = tokio::time::timeout(HANDSHAKE, secure);
            let stream = stop.run_until_cancelled(secure).await.ok_or("stopped")???;
            let certificates = stream.get_ref().1.peer_certificates();
            let shown = certificates.and_then(|all| common_name(all.first()?));
            let peer = peer.under_tls().with_certificate(shown.map(Arc::from));
            converse(http, TokioIo::new(stream), From { routes, peer }, stop).await
        }
    }
}

/// The routes for requests that come by one connection.
struct From {
    routes: TowerToHyperService<Routes>,
    peer: Peer,
}

impl Service<Request<Incoming>> for From {
    type Response = <TowerToHyperService<Routes> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Routes> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Routes> as Service<Request<Incoming>>>::Future;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.peer.clone());
        self.routes.call(request)
    }
}

/// Answers what is asked on one connection; once it is to stop, what was asked before.
async fn converse(
    http: http1::Builder,
    stream: impl Read + Write + Unpin,
    routes: From,
    stop: CancellationToken,
) -> Result<(), Ended> {
    let mut connection = std::pin::pin!(http.serve_connection(stream, routes));
    tokio::select! {
        ended = connection.as_mut() => return Ok(ended?),
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    Ok(connection.await?)
}
