//! A web server that answers as it is told.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::world::soon;

/// A request that came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Got {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// What it makes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Says {
    /// A status, and further headers.
    Status(u16, &'static str),
    /// Nothing at all.
    Nothing,
    /// The connection is reset.
    Resets,
    /// An answer, after which it closes the connection without a word.
    Closes,
}

type Manner = Arc<Mutex<Box<dyn FnMut(&Got) -> Says + Send>>>;

pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    manner: Manner,
    got: mpsc::Receiver<Got>,
    serving: JoinHandle<()>,
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Receiver {
    pub(crate) async fn new(manner: impl FnMut(&Got) -> Says + Send + 'static) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self::on(socket, manner)
    }

    pub(crate) fn on(socket: TcpListener, manner: impl FnMut(&Got) -> Says + Send + 'static) -> Self {
        let address = socket.local_addr().expect("an address");
        let manner: Manner = Arc::new(Mutex::new(Box::new(manner)));
        let (tell, got) = mpsc::channel(100_000);
        let all = Arc::clone(&manner);
        let serving = tokio::spawn(async move {
            loop {
                let Ok((socket, _)) = socket.accept().await else { return };
                tokio::spawn(serve(socket, Arc::clone(&all), tell.clone()));
            }
        });
        Self { address, manner, got, serving }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook?from=overtake", self.address)
    }

    pub(crate) fn now(&self, manner: impl FnMut(&Got) -> Says + Send + 'static) {
        *self.manner.lock().expect("nobody panicked") = Box::new(manner);
    }

    /// The next request.
    pub(crate) async fn next(&mut self) -> Got {
        soon("a request", self.got.recv()).await.expect("it serves")
    }

    /// The bodies of the next requests.
    pub(crate) async fn bodies(&mut self, count: usize) -> String {
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(self.next().await.text());
        }
        all.join(" ")
    }
}

async fn serve(socket: TcpStream, manner: Manner, tell: mpsc::Sender<Got>) {
    let mut socket = BufReader::new(socket);
    while let Some(got) = read(&mut socket).await {
        let says = (manner.lock().expect("nobody panicked"))(&got);
        let _ = tell.send(got).await;
        let (status, headers, closes) = match says {
            Says::Status(status, headers) => (status, headers, false),
            Says::Closes => (200, "", true),
            Says::Nothing => return std::future::pending().await,
            Says::Resets => return drop(socket.into_inner().set_zero_linger()),
        };
        let answer = format!("HTTP/1.1 {status} So\r\n{headers}content-length: 2\r\n\r\nno");
        if socket.write_all(answer.as_bytes()).await.is_err() || closes {
            return;
        }
    }
}

async fn read(socket: &mut BufReader<TcpStream>) -> Option<Got> {
    let mut got = Got::default();
    socket.read_line(&mut got.line).await.ok().filter(|len| *len > 0)?;
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).await.ok().filter(|len| *len > 0)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => drop(got.headers.insert(name.to_lowercase(), value.to_owned())),
            None => break,
        }
    }
    got.body = vec![0; got.header("content-length").parse().unwrap_or(0)];
    socket.read_exact(&mut got.body).await.ok()?;
    Some(got)
}
