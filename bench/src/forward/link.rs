//! A web server at the other end of a slow link: what it reads comes at a rate, and it is away when it is told to be.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::now;

/// A body, and when it had arrived.
pub(super) struct Arrival {
    pub(super) at: f64,
    pub(super) body: String,
}

pub(super) struct Link {
    pub(super) address: SocketAddr,
    cut: Arc<watch::Sender<bool>>,
}

impl Link {
    pub(super) fn cut(&self, is_cut: bool) {
        self.cut.send_replace(is_cut);
    }
}

pub(super) async fn receiver(bytes_per_second: u32, arrivals: mpsc::Sender<Arrival>) -> Link {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let cut = Arc::new(watch::Sender::new(false));
    let cuts = cut.subscribe();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let (mut cuts, arrivals) = (cuts.clone(), arrivals.clone());
            if *cuts.borrow() {
                continue;
            }
            tokio::spawn(async move {
                tokio::select! {
                    _ = cuts.wait_for(|is_cut| *is_cut) => {}
                    _ = serve(socket, bytes_per_second, &arrivals) => {}
                }
            });
        }
    });
    Link { address, cut }
}

async fn serve(mut socket: TcpStream, bytes_per_second: u32, arrivals: &mpsc::Sender<Arrival>) -> Option<()> {
    let mut input = Vec::new();
    let mut free = Instant::now();
    loop {
        let (head, len) = loop {
            if let Some(found) = request(&input) {
                break found;
            }
            let before = input.len();
            socket.read_buf(&mut input).await.ok().filter(|len| *len > 0)?;
            // As long as the link takes for it.
            let takes = Duration::from_secs_f64((input.len() - before) as f64 / f64::from(bytes_per_second));
            free = free.max(Instant::now()) + takes;
            tokio::time::sleep_until(free).await;
        };
        let body = String::from_utf8_lossy(&input[head..head + len]).into_owned();
        input.drain(..head + len);
        arrivals.send(Arrival { at: now(), body }).await.ok()?;
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.ok()?;
    }
}

/// Lengths of the head and the body of a request that is there whole.
fn request(input: &[u8]) -> Option<(usize, usize)> {
    let head = input.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&input[..head]).ok()?.to_ascii_lowercase();
    let len = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok())?;
    (input.len() >= head + len).then_some((head, len))
}
