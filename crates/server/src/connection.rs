//! One HTTP/1.1 connection.

use std::future::Future;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

/// How connections are served.
#[derive(Clone)]
pub(crate) struct Connections {
    routes: axum::Router,
    http: http1::Builder,
}

impl Connections {
    /// A client must send the head of each request within `header_timeout`; an idle connection is closed after it, too.
    pub(crate) fn new(routes: axum::Router, header_timeout: Duration) -> Self {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(header_timeout);
        Self { routes, http }
    }

    /// Serves one connection until it ends, or until `stop` and the request that is under way then is answered.
    pub(crate) fn serve(
        &self,
        stream: TcpStream,
        stop: CancellationToken,
    ) -> impl Future<Output = Result<(), hyper::Error>> + Send + use<> {
        let routes = TowerToHyperService::new(self.routes.clone());
        let connection = self.http.serve_connection(TokioIo::new(stream), routes);
        async move {
            let mut connection = std::pin::pin!(connection);
            tokio::select! {
                ended = connection.as_mut() => return ended,
                () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            connection.await
        }
    }
}
