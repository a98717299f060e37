//! A server of its own for each test, which ends with it.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use overtake_valkey::functions::LIBRARY;
use redis::{Connection, cmd};

pub(crate) struct Server {
    dir: tempfile::TempDir,
    child: Child,
}

impl Server {
    /// `None`: there is no Redis here.
    pub(crate) fn start() -> Option<Self> {
        let program =
            ["/usr/bin/redis-server", "/usr/bin/valkey-server"].into_iter().find(|at| Path::new(at).exists());
        let Some(program) = program else {
            let why = "there is no Redis or Valkey; on Debian: apt-get install redis-server";
            assert!(std::env::var_os("CI").is_none(), "{why}");
            return None;
        };
        let dir = tempfile::tempdir().expect("a directory");
        let child = Command::new(program)
            .args(["--port", "0", "--unixsocket", "redis.sock", "--save", "", "--dir"])
            .arg(dir.path())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        Some(Self { dir, child })
    }

    /// A connection, as soon as it serves, with the functions loaded.
    pub(crate) fn connect(&self) -> Connection {
        self.connect_with(LIBRARY.source)
    }

    /// As [`Server::connect`], where the key `room` says how many messages go from lanes that are being left with each call.
    pub(crate) fn connect_with_room(&self) -> Connection {
        let room = "function LEFT.room(is_first) return is_first and 1000 or DUE_MAX end";
        assert_eq!(LIBRARY.source.matches(room).count(), 1);
        let says = "function LEFT.room() return tonumber(redis.call('GET', 'room') or 128) end";
        self.connect_with(&LIBRARY.source.replace(room, says))
    }

    fn connect_with(&self, source: &str) -> Connection {
        let url = format!("redis+unix://{}", self.dir.path().join("redis.sock").display());
        let client = redis::Client::open(url).expect("an address");
        let mut connection = loop {
            match client.get_connection() {
                Ok(connection) => break connection,
                Err(_) => std::thread::yield_now(),
            }
        };
        let source = format!("#!lua name={}\n{source}", LIBRARY.name);
        let loaded = cmd("FUNCTION").arg("LOAD").arg("REPLACE").arg(source).query::<String>(&mut connection);
        assert_eq!(loaded.expect("the functions are loaded"), "overtake");
        connection
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
