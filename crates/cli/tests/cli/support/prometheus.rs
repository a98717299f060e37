//! Prometheus, as Debian has it: its checks, and itself, run as `deploy/prometheus` says.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::Broker;

/// What is to be deployed beside a broker.
pub fn deployed(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

/// Whether it is installed. In CI it must be.
pub fn is_there() -> bool {
    let works = |tool| Command::new(tool).arg("--version").output().is_ok_and(|run| run.status.success());
    let is_there = ["promtool", "prometheus"].into_iter().all(works);
    assert!(is_there || std::env::var_os("CI").is_none(), "prometheus must be there in CI");
    is_there
}

/// Runs promtool with these words and this stdin: what it says, and whether it is content.
pub fn promtool(words: &[&str], stdin: &str) -> (bool, String) {
    let mut command = Command::new("promtool");
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it runs");
    child.stdin.take().expect("piped").write_all(stdin.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// One that scrapes a broker, on a free port.
pub struct Prometheus {
    child: Child,
    url: String,
}

impl Prometheus {
    /// Starts it with the configuration that is deployed, but for where the broker is, what is shown to it and how often.
    #[track_caller]
    pub fn start(dir: &Path, broker: &Broker) -> Self {
        let config = std::fs::read_to_string(deployed("prometheus/prometheus.yml")).expect("it is there");
        let user = ["user", "put", "prometheus", "--new-password", "--tag", "monitoring"];
        broker.feed(&user, b"password\n").ok();
        let token = broker.run(&["token", "make", "--for", "prometheus", "--tag", "monitoring"]).ok();
        let secrets = [("overtake.token", token.trim()), ("overtake.password", "password")];
        for (file, secret) in secrets {
            std::fs::write(dir.join(file), secret).expect("a file");
        }
        std::fs::copy(deployed("prometheus/overtake.rules.yml"), dir.join("overtake.rules.yml"))
            .expect("copied");
        let dir_text = dir.to_str().expect("text");
        let config = config
            .replace("/etc/prometheus", dir_text)
            .replace("127.0.0.1:15672", broker.url.strip_prefix("http://").expect("http"))
            .replace("scrape_interval: 15s", "scrape_interval: 200ms")
            .replace("scrape_interval: 60s", "scrape_interval: 200ms");
        let file = dir.join("prometheus.yml");
        std::fs::write(&file, config).expect("a file");
        let mut command = Command::new("prometheus");
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", dir.join("tsdb").display()));
        command.args(["--web.listen-address=127.0.0.1:0", "--log.level=info"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        let mut seen = Vec::new();
        let address = lines.by_ref().find_map(|line| {
            let address = line.split_once("Listening on\" address=").map(|(_, address)| address.to_owned());
            seen.push(line);
            address
        });
        let address = address.unwrap_or_else(|| panic!("it does not listen:\n{}", seen.join("\n")));
        // It must not wait for somebody to read what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: format!("http://{address}") }
    }

    /// What a query gives now: labels and a number each. `None`: it is not ready.
    pub fn query(&self, query: &str) -> Option<Vec<(Value, f64)>> {
        let (done, said) = promtool(&["query", "-o", "json", "instant", &self.url, query], "");
        let found: Vec<Value> = serde_json::from_str(&said).ok().filter(|_| done)?;
        let number = |one: &Value| one["value"][1].as_str().and_then(|number| number.parse().ok());
        Some(found.iter().map(|one| (one["metric"].clone(), number(one).expect("a number"))).collect())
    }

    /// What a query gives once it gives what is waited for.
    pub fn await_query(&self, query: &str, is_right: impl Fn(&[(Value, f64)]) -> bool) -> Vec<(Value, f64)> {
        loop {
            if let Some(found) = self.query(query).filter(|found| is_right(found)) {
                return found;
            }
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
