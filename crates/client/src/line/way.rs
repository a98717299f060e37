//! How to get to the broker: where it is, who logs in, and what must be there before anything is asked.

use std::sync::Arc;
use std::time::Duration;

use overtake_amqp::client::ClientOptions;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::error::Error;
use crate::topology::Topology;

/// How to get to the broker.
pub(crate) struct Way {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    pub(crate) options: ClientOptions,
    /// How long a connection may take until it is open.
    pub(crate) patience: Duration,
    /// When a login that is refused later is tried again; `None`: never.
    pub(crate) login_retry: Option<Duration>,
    /// What is declared again after each loss.
    pub(crate) topology: Arc<Topology>,
}

/// Any socket.
pub(super) trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

impl Way {
    /// A socket to the broker.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) async fn connect(&self) -> Result<Box<dyn Socket>, Error> {
        match tokio::time::timeout(self.patience, self.connect_patiently()).await {
            Ok(result) => result,
            Err(_) => Err(Error::ConnectionLost(format!("{}:{} does not answer", self.host, self.port))),
        }
    }

    async fn connect_patiently(&self) -> Result<Box<dyn Socket>, Error> {
        let Self { host, port, .. } = self;
        let lost = |error: std::io::Error| Error::ConnectionLost(format!("{host}:{port}: {error}"));
        let socket = TcpStream::connect((host.as_str(), *port)).await.map_err(lost)?;
        socket.set_nodelay(true).map_err(lost)?;
        let Some(config) = &self.tls else { return Ok(Box::new(socket)) };
        let name = ServerName::try_from(host.clone())
            .map_err(|_| Error::Invalid(format!("`{host}` is no name that a certificate may have")))?;
        let begun = TlsConnector::from(Arc::clone(config)).connect(name, socket).await;
        begun.map(|socket| Box::new(socket) as Box<dyn Socket>).map_err(lost)
    }
}
