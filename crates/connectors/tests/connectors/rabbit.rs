//! A RabbitMQ as Debian packs it, with its management API, on free ports and in a directory of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;

use overtake_free_port::free_port;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// Not the one in the path, which insists on the system's user and directories.
const PROGRAM: &str = "/usr/lib/rabbitmq/bin/rabbitmq-server";
/// What speaks with one that runs.
const CONTROL: &str = "/usr/lib/rabbitmq/bin/rabbitmqctl";

pub(crate) struct Rabbit {
    dir: tempfile::TempDir,
    port: u16,
    management: u16,
    names_port: u16,
    names: Child,
    server: Child,
}

impl Rabbit {
    /// `None`: there is no RabbitMQ here.
    pub(crate) async fn start() -> Option<Self> {
        if !Path::new(PROGRAM).exists() {
            eprintln!("skipped: there is no RabbitMQ; on Debian: apt-get install rabbitmq-server");
            assert!(std::env::var_os("CI").is_none(), "rabbitmq-server must be there in CI");
            return None;
        }
        let dir = tempfile::tempdir().expect("a directory");
        let [port, management, names_port] = [free_port(), free_port(), free_port()];
        std::fs::write(dir.path().join("plugins"), "[rabbitmq_management].").expect("written");
        let conf = format!("management.tcp.port = {management}\nmanagement.tcp.ip = 127.0.0.1\n");
        std::fs::write(dir.path().join("rabbitmq.conf"), conf).expect("written");
        let names = Command::new("epmd")
            .args(["-port", &names_port.to_string(), "-address", "127.0.0.1"])
            .kill_on_drop(true)
            .spawn()
            .expect("epmd comes with Erlang");
        let server = Self::spawn(dir.path(), port, names_port);
        let mut rabbit = Self { dir, port, management, names_port, names, server };
        rabbit.until_it_serves().await;
        Some(rabbit)
    }

    fn spawn(dir: &Path, port: u16, names_port: u16) -> Child {
        let path = |name: &str| dir.join(name).display().to_string();
        Command::new(PROGRAM)
            .env("HOME", path(""))
            .env("ERL_EPMD_ADDRESS", "127.0.0.1")
            .env("ERL_EPMD_PORT", names_port.to_string())
            .env("RABBITMQ_NODENAME", format!("test{port}@localhost"))
            .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
            .env("RABBITMQ_NODE_PORT", port.to_string())
            .env("RABBITMQ_DIST_PORT", free_port().to_string())
            .env("RABBITMQ_MNESIA_BASE", path("data"))
            .env("RABBITMQ_LOG_BASE", path("logs"))
            .env("RABBITMQ_ENABLED_PLUGINS_FILE", path("plugins"))
            .env("RABBITMQ_CONFIG_FILE", path("rabbitmq.conf"))
            .env("RABBITMQ_CONF_ENV_FILE", path("no-such-file"))
            // So that the script becomes the broker, and is the process that is stopped; but it has no input.
            .env("RABBITMQ_ALLOW_INPUT", "true")
            .env("RABBITMQ_SERVER_START_ARGS", "-noinput")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts")
    }

    /// It says when it serves.
    async fn until_it_serves(&mut self) {
        let said = self.server.stdout.take().expect("it says something");
        let mut lines = BufReader::new(said).lines();
        let mut all = String::new();
        while let Ok(Some(line)) = lines.next_line().await {
            if line.contains("completed with") {
                // So that it may go on speaking.
                tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
                return;
            }
            all.push_str(&line);
            all.push('\n');
        }
        panic!("RabbitMQ does not start: {all}");
    }

    /// Has on disk what was declared: RabbitMQ itself writes it seconds later, and forgets what it had not yet written when it is killed.
    pub(crate) async fn keep(&self) {
        let done = Command::new(CONTROL)
            .args(["--node", &format!("test{}@localhost", self.port), "eval", "mnesia:sync_log()."])
            .env("HOME", self.dir.path())
            .env("ERL_EPMD_PORT", self.names_port.to_string())
            .output()
            .await
            .expect("it comes with RabbitMQ");
        assert!(done.status.success(), "{done:?}");
    }

    /// As by `kill -9`.
    pub(crate) async fn kill(&mut self) {
        self.server.kill().await.expect("killed");
    }

    pub(crate) async fn begin_again(&mut self) {
        self.server = Self::spawn(self.dir.path(), self.port, self.names_port);
        self.until_it_serves().await;
    }

    pub(crate) fn url(&self) -> String {
        format!("amqp://127.0.0.1:{}", self.port)
    }

    async fn try_ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<(u16, Value)> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.management));
        let mut socket = TcpStream::connect(address).await.ok()?;
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = format!(
            "{method} {path} HTTP/1.0\r\nauthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).unwrap_or(Value::Null)))
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.try_ask(method, path, Some(&body)).await.expect("it answers");
        assert!(status < 300, "{method} {path}: {status} {answer}");
        answer
    }

    pub(crate) async fn declare(&self, queue: &str) {
        self.declare_with(queue, json!({})).await;
    }

    pub(crate) async fn declare_with(&self, queue: &str, arguments: Value) {
        let declare = json!({"durable": true, "arguments": arguments});
        self.ask("PUT", &format!("/api/queues/%2F/{queue}"), declare).await;
    }

    pub(crate) async fn bind(&self, exchange: &str, key: &str, queue: &str) {
        self.ask("POST", &format!("/api/bindings/%2F/e/{exchange}/q/{queue}"), json!({"routing_key": key}))
            .await;
    }

    pub(crate) async fn publish(&self, queue: &str, body: &str, properties: &Value) {
        let message = json!({"routing_key": queue, "payload": body, "payload_encoding": "string", "properties": properties});
        let answer = self.ask("POST", "/api/exchanges/%2F/amq.default/publish", message).await;
        assert_eq!(answer["routed"], true);
    }

    /// Takes so many messages, which must be there.
    pub(crate) async fn take(&self, queue: &str, count: usize) -> Vec<Value> {
        let get = json!({"count": count, "ackmode": "ack_requeue_false", "encoding": "auto"});
        let got = self.ask("POST", &format!("/api/queues/%2F/{queue}/get"), get).await;
        let got = got.as_array().expect("a list").clone();
        assert_eq!(got.len(), count, "{got:?}");
        got
    }

    /// How many can be taken of it.
    pub(crate) async fn count(&self, queue: &str) -> usize {
        let get = json!({"count": 1_000, "ackmode": "ack_requeue_true", "encoding": "auto"});
        let got = self.ask("POST", &format!("/api/queues/%2F/{queue}/get"), get).await;
        got.as_array().expect("a list").len()
    }
}

impl Drop for Rabbit {
    fn drop(&mut self) {
        let _ = self.server.start_kill();
        let _ = self.names.start_kill();
    }
}
