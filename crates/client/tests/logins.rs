//! Logins that fail: only a word of the broker is a refusal, and a client that was logged in tries again. The broker is a script here.

use std::time::Duration;

use overtake_client::{Client, ConnectOptions, Error, Message};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// How a login goes.
#[derive(Clone, Copy, Debug)]
enum Login {
    /// It succeeds, and the connection is cut when the test says so.
    Opens,
    /// Cut once the protocol header came.
    CutAtOnce,
    /// Cut in the middle of the first frame.
    CutInAFrame,
    /// Cut after `start-ok`.
    CutAfterStartOk,
    /// Cut after `tune`.
    CutAfterTune,
    /// Something else answers.
    Says(&'static [u8]),
    /// Closed by the broker after `start-ok`.
    ClosedAfterStartOk(u16, &'static str),
    /// Closed by the broker when the virtual host was asked for.
    ClosedAfterOpen(u16, &'static str),
}
use Login::{
    ClosedAfterOpen, ClosedAfterStartOk, CutAfterStartOk, CutAfterTune, CutAtOnce, CutInAFrame, Opens, Says,
};

const WRONG_PASSWORD: Login = ClosedAfterStartOk(403, "ACCESS_REFUSED - login refused (PLAIN)");
const NO_VHOST: Login = ClosedAfterOpen(530, "NOT_ALLOWED - vhost '/' not found");
const STOPPING: Login = ClosedAfterStartOk(320, "CONNECTION_FORCED - broker forced connection closure");
const CROWDED: Login = ClosedAfterStartOk(506, "RESOURCE_ERROR - login not checked (PLAIN)");
const PROXY: Login = Says(b"HTTP/1.1 503 Service Unavailable\r\n\r\n");

fn method(class: u16, method: u16, arguments: &[u8]) -> Vec<u8> {
    let payload = [&class.to_be_bytes()[..], &method.to_be_bytes(), arguments].concat();
    let len = u32::try_from(payload.len()).unwrap();
    [&[1, 0, 0][..], &len.to_be_bytes(), &payload, &[0xce]].concat()
}

fn start() -> Vec<u8> {
    method(10, 10, b"\x00\x09\x00\x00\x00\x00\x00\x00\x00\x05PLAIN\x00\x00\x00\x05en_US")
}

fn close(code: u16, text: &str) -> Vec<u8> {
    let len = [u8::try_from(text.len()).unwrap()];
    method(10, 50, &[&code.to_be_bytes()[..], &len, text.as_bytes(), &[0; 4]].concat())
}

async fn read_frame(socket: &mut TcpStream) {
    let mut head = [0; 7];
    socket.read_exact(&mut head).await.expect("a frame");
    let len = u32::from_be_bytes(head[3..].try_into().unwrap());
    let mut rest = vec![0; len as usize + 1];
    socket.read_exact(&mut rest).await.expect("the rest of it");
}

/// Plays a login. The socket of one that opens is given back.
async fn play(socket: &mut TcpStream, login: Login) -> bool {
    let mut header = [0; 8];
    if socket.read_exact(&mut header).await.is_err() {
        return false;
    }
    let start = start();
    match login {
        CutAtOnce => return false,
        CutInAFrame => {
            socket.write_all(&start[..start.len() / 2]).await.unwrap();
            return false;
        }
        Says(bytes) => {
            socket.write_all(bytes).await.unwrap();
            return false;
        }
        _ => socket.write_all(&start).await.unwrap(),
    }
    read_frame(socket).await;
    match login {
        CutAfterStartOk => return false,
        ClosedAfterStartOk(code, text) => return closed(socket, code, text).await,
        _ => socket.write_all(&method(10, 30, &[0, 10, 0, 1, 0, 0, 0, 0])).await.unwrap(),
    }
    if matches!(login, CutAfterTune) {
        return false;
    }
    read_frame(socket).await;
    read_frame(socket).await;
    if let ClosedAfterOpen(code, text) = login {
        return closed(socket, code, text).await;
    }
    socket.write_all(&method(10, 41, &[0])).await.unwrap();
    true
}

/// The client agrees and hangs up.
async fn closed(socket: &mut TcpStream, code: u16, text: &str) -> bool {
    socket.write_all(&close(code, text)).await.unwrap();
    let _ = socket.read_to_end(&mut Vec::new()).await;
    false
}

/// A broker whose logins go like this, one after the other. It tells of each that opens, by how to cut it.
struct Broker {
    url: String,
    opened: mpsc::Receiver<TcpStream>,
}

impl Broker {
    async fn of(logins: Vec<Login>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("amqp://{}", listener.local_addr().unwrap());
        let (tell, opened) = mpsc::channel(10);
        tokio::spawn(async move {
            for login in logins {
                let (mut socket, _) = listener.accept().await.unwrap();
                if play(&mut socket, login).await {
                    tell.send(socket).await.unwrap();
                }
            }
            // Further connections wait for ever.
            std::future::pending::<()>().await;
            drop(listener);
        });
        Self { url, opened }
    }

    async fn cut(&mut self) {
        drop(self.opened.recv().await.expect("a connection"));
    }
}

#[tokio::test]
async fn a_login_that_is_cut_or_answered_by_something_else_is_tried_again() {
    for login in [CutAtOnce, CutInAFrame, CutAfterStartOk, CutAfterTune, PROXY, STOPPING, CROWDED] {
        let mut broker = Broker::of(vec![Opens, login, login, Opens]).await;
        // A client that took it for a refusal would wait for an hour.
        let options = ConnectOptions::new(&broker.url).login_retry(Some(Duration::from_secs(3_600)));
        let client = Client::connect(options).await.unwrap();
        broker.cut().await;
        assert!(broker.opened.recv().await.is_some(), "{login:?}");
        drop(client);
    }
}

#[tokio::test]
async fn a_login_that_is_refused_later_is_tried_again() {
    for refusal in [WRONG_PASSWORD, NO_VHOST] {
        let mut broker = Broker::of(vec![Opens, refusal, refusal, Opens]).await;
        let options = ConnectOptions::new(&broker.url).login_retry(Some(Duration::from_millis(1)));
        let client = Client::connect(options).await.unwrap();
        broker.cut().await;
        assert!(broker.opened.recv().await.is_some(), "{refusal:?}");
        drop(client);
    }
}

#[tokio::test]
async fn without_a_retry_a_refusal_ends_the_client_and_a_cut_does_not() {
    for refusal in [WRONG_PASSWORD, NO_VHOST] {
        let mut broker = Broker::of(vec![Opens, CutAfterStartOk, CutAfterTune, refusal]).await;
        let options = ConnectOptions::new(&broker.url).login_retry(None);
        let client = Client::connect(options).await.unwrap();
        let mut consuming = std::pin::pin!(client.consume("q", 1));
        tokio::select! {
            biased;
            _ = &mut consuming => panic!("nobody answers"),
            () = broker.cut() => {}
        }
        let told = consuming.await.map(drop);
        assert!(matches!(told, Err(Error::LoginRefused(_))), "{told:?}");
        let told = client.publish("q", Message::new("a")).await;
        assert!(matches!(told, Err(Error::LoginRefused(_))), "{told:?}");
    }
}

#[tokio::test]
async fn a_first_login_says_at_once_why_it_failed() {
    for login in [CutAtOnce, CutInAFrame, CutAfterStartOk, CutAfterTune, PROXY, STOPPING, CROWDED] {
        let broker = Broker::of(vec![login]).await;
        let told = Client::connect(&broker.url).await.map(drop);
        assert!(matches!(told, Err(Error::ConnectionLost(_))), "{login:?}: {told:?}");
    }
    for login in [WRONG_PASSWORD, NO_VHOST] {
        let broker = Broker::of(vec![login]).await;
        let told = Client::connect(&broker.url).await.map(drop);
        assert!(matches!(told, Err(Error::LoginRefused(_))), "{login:?}: {told:?}");
    }
    // The handshake of TLS is cut.
    let broker = Broker::of(vec![CutAtOnce]).await;
    let told = Client::connect(broker.url.replace("amqp", "amqps")).await.map(drop);
    assert!(matches!(told, Err(Error::ConnectionLost(_))), "{told:?}");
}

#[tokio::test]
async fn a_client_whose_login_is_refused_can_be_closed() {
    let mut broker = Broker::of(vec![Opens, WRONG_PASSWORD]).await;
    let options = ConnectOptions::new(&broker.url).login_retry(Some(Duration::from_secs(3_600)));
    let client = Client::connect(options).await.unwrap();
    broker.cut().await;
    client.close().await;
}
