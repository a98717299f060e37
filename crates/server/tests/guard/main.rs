//! Web pages of other origins reach no route of any router: every route is asked as such a page would make a browser ask.

#[path = "../support/mod.rs"]
mod support;

use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::sync_channel;

use overtake_server::config::{Config, HostNames, Listen, Listener};
use overtake_server::serve;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{GUEST, exchange};

/// A broker as it is installed, on a free port and with a directory of its own, under these host names. It ends with this process.
struct Broker {
    http: SocketAddr,
    /// As long as this is there.
    _dir: TempDir,
}

impl Broker {
    fn start(hosts: &[&str]) -> Self {
        let dir = TempDir::new().expect("a directory");
        let mut config = Config::default();
        config.store.data_dir.value = dir.path().join("data");
        config.store.segment_bytes.value.0 = 4 << 20;
        config.http.listen.value = Listen(SocketAddr::from(([127, 0, 0, 1], 0)));
        config.http.hosts.value = HostNames(hosts.iter().map(|&name| name.to_owned()).collect());
        config.amqp.listen.value = Listener(None);
        let (tell, ready) = sync_channel(1);
        std::thread::spawn(move || {
            let ended = serve(&config, &|ready| tell.send(ready.addresses.http).expect("it is awaited"));
            panic!("it ended: {ended:?}");
        });
        Self { http: ready.recv().expect("it starts"), _dir: dir }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(self.http).expect("it accepts")
    }
}

/// Every route of the broker as `METHOD /path`, from what the routers say of themselves; and one that is none.
fn routes() -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(&overtake_http::openapi_json()).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let of_api = paths.iter().flat_map(|(path, item)| {
        let methods = item.as_object().expect("a path item").keys();
        methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    });
    let of_management = overtake_management::routes()
        .into_iter()
        .map(|route| (route.method.to_string(), route.path.to_owned()));
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../page/assets");
    let files = std::fs::read_dir(assets).expect("the files of the page").map(|file| {
        let name = file.expect("a file").file_name();
        ("GET".to_owned(), format!("/assets/{}", name.to_string_lossy()))
    });
    let others = [("GET", "/"), ("GET", "/nothing"), ("OPTIONS", "*")];
    let others = others.map(|(method, path)| (method.to_owned(), path.to_owned()));
    let all: Vec<_> = of_api.chain(of_management).chain(files).chain(others).collect();
    assert!(all.len() > 200, "{}", all.len());
    // Names in braces are as good as any.
    all.into_iter().map(|(method, path)| (method, path.replace("{*", "{").replace(['{', '}'], ""))).collect()
}

#[test]
fn no_route_of_any_router_is_reached_by_a_web_page_of_another_origin() {
    let broker = Broker::start(&[]);
    let address = broker.http;
    let own = format!("Host: {address}\r\n");
    let foreign = [
        ("421", "host-foreign", "Host: rebound.example\r\n".to_owned()),
        ("421", "host-foreign", format!("Host: rebound.example:{}\r\n", address.port())),
        ("403", "origin-foreign", format!("{own}Origin: https://rebound.example\r\n")),
        ("403", "origin-foreign", format!("{own}Origin: null\r\n")),
        ("403", "origin-foreign", format!("{own}Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n")),
        ("400", "host-invalid", format!("{own}{own}")),
        ("400", "host-invalid", format!("{own}Host: rebound.example\r\n")),
        ("400", "host-invalid", String::new()),
    ];
    let mut stream = broker.connect();
    for (method, path) in routes() {
        for (status, code, headers) in &foreign {
            for login in ["", GUEST] {
                let request =
                    format!("{method} {path} HTTP/1.1\r\n{headers}{login}Content-Length: 0\r\n\r\n");
                let (head, body) = exchange(&mut stream, &request);
                assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{request}{head}{body}");
                assert!(head.contains("x-content-type-options: nosniff"), "{request}{head}");
                assert!(body.contains(code), "{request}{body}");
            }
        }
    }
    // Nothing of it was done: who may ask is answered, and finds the broker as it was.
    let (head, users) = exchange(&mut stream, &format!("GET /v1/users HTTP/1.1\r\n{own}{GUEST}\r\n"));
    let names: Value = serde_json::from_str(&users).expect(&users);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}{users}");
    assert_eq!(names["users"].as_array().map(Vec::len), Some(1), "{names}");
}

#[test]
fn every_answer_says_that_it_is_not_to_be_guessed_at() {
    let broker = Broker::start(&[]);
    let address = broker.http;
    // Without a login, so nothing is done.
    for (method, path) in routes() {
        let mut stream = broker.connect();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        );
        let (head, _) = exchange(&mut stream, &request);
        assert!(head.contains("x-content-type-options: nosniff"), "{request}{head}");
    }
}

#[test]
fn a_proxy_may_use_the_names_that_are_configured() {
    let broker = Broker::start(&["broker.example", "other.example:8443"]);
    let address = broker.http;
    for (headers, status) in [
        ("Host: broker.example\r\nOrigin: https://broker.example\r\n".to_owned(), "200"),
        ("Host: other.example:8443\r\n".to_owned(), "200"),
        ("Host: other.example\r\n".to_owned(), "421"),
        ("Host: rebound.example\r\n".to_owned(), "421"),
        (format!("Host: {address}\r\nOrigin: https://broker.example\r\n"), "200"),
        (format!("Host: {address}\r\nOrigin: https://rebound.example\r\n"), "403"),
    ] {
        for path in ["/", "/livez", "/v1/whoami", "/api/whoami", "/metrics"] {
            let mut stream = broker.connect();
            let (head, body) = exchange(
                &mut stream,
                &format!("GET {path} HTTP/1.1\r\n{headers}{GUEST}Connection: close\r\n\r\n"),
            );
            assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path} {headers}{head}{body}");
        }
    }
}
