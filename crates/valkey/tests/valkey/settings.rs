//! Settings that are wrong, and servers that cannot do it: each says what to do.

use overtake_free_port::free_port;
use overtake_peer::{Secret, Tls, Vault};
use overtake_valkey::cluster::{Cluster, Kind, Library, Nodes};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::certificates::Certificates;
use crate::story::{LIBRARY, Load, add, connect, long, numbers};
use crate::world::{Program, QUICK, Server, World, until};

async fn why(nodes: Nodes) -> String {
    why_with(nodes, LIBRARY).await
}

async fn why_with(nodes: Nodes, library: Library) -> String {
    Cluster::connect(nodes, Vault::ANY, library).await.err().expect("refused")
}

fn check(why: &str, parts: &[&str]) {
    assert!(parts.iter().all(|part| why.contains(part)), "{parts:?}: {why}");
}

fn at(kind: Kind, urls: &[String]) -> Nodes {
    Nodes::new(kind, urls.to_vec())
}

#[tokio::test]
async fn servers_that_do_not_answer_are_each_named() {
    let ports = [free_port(), free_port()];
    let urls = ports.map(|port| format!("redis://127.0.0.1:{port}"));
    let [first, second] = ports.map(|port| format!("127.0.0.1:{port} does not answer: Connection refused"));
    check(&why(at(Kind::Cluster, &urls)).await, &[&first, &second]);
}

#[tokio::test]
async fn a_password_that_is_missing_or_wrong_is_told() {
    for program in Program::all() {
        let world = World::one(program, &["--requirepass", "secret"]);
        check(&why(world.nodes()).await, &["NOAUTH", "see to `username` and `password`"]);
        let file = world.servers[0].dir().join("password");
        let named = Nodes { password: Some(Secret::File(file.clone())), ..world.nodes() };
        std::fs::write(&file, "wrong\n").expect("a file");
        check(&why(named.clone()).await, &["WRONGPASS", "see to `username` and `password`"]);
        std::fs::write(&file, "secret\n").expect("a file");
        connect(named).await;
    }
}

#[tokio::test]
async fn what_is_no_cluster_and_what_is_one_are_told_apart() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let urls = [world.servers[0].url()];
        check(&why(at(Kind::Cluster, &urls)).await, &[&urls[0][8..], "say kind = \"redis\""]);
        let node = World::one(program, &["--cluster-enabled", "yes"]);
        check(&why(node.nodes()).await, &["say kind = \"cluster\""]);
        check(
            &why(at(Kind::Cluster, &[node.servers[0].url()])).await,
            &["nobody in its cluster holds slots"],
        );
        let port = world.servers[0].port.to_string();
        let replica = World::one(program, &["--replicaof", "127.0.0.1", &port]);
        check(&why(replica.nodes()).await, &["it is a replica", &format!("127.0.0.1:{port}")]);
    }
}

#[tokio::test]
async fn a_server_that_is_too_old_is_told_by_its_version() {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let old = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        let mut bytes = [0; 1_024];
        while let Ok(len @ 1..) = socket.read(&mut bytes).await {
            let info = "redis_version:6.2.14\r\ncluster_enabled:0\r\n";
            let is_info = String::from_utf8_lossy(&bytes[..len]).contains("INFO");
            let answer =
                if is_info { format!("${}\r\n{info}\r\n", info.len()) } else { "+PONG\r\n".to_owned() };
            socket.write_all(answer.as_bytes()).await.expect("it listens");
        }
    });
    let url = format!("redis://127.0.0.1:{port}");
    check(&why(at(Kind::Redis, &[url])).await, &["Redis 6.2.14", "upgrade it"]);
    old.await.expect("ended");
}

#[tokio::test]
async fn functions_that_are_newer_or_other_or_broken_are_left_and_told() {
    for program in Program::all() {
        let world = World::one(program, &[]);
        let newer = Library { version: 2, ..LIBRARY };
        let cluster = Cluster::connect(world.nodes(), Vault::ANY, newer).await.expect("there");
        check(&why(world.nodes()).await, &["version 2 of the functions of story", "run the newer program"]);
        let other = Library { source: "-- another\n", ..newer };
        check(&why_with(world.nodes(), other).await, &["another library story", "gets a new version"]);
        let broken = Library { version: 3, source: "redis.register_function(", ..LIBRARY };
        check(&why_with(world.nodes(), broken).await, &["the functions of story cannot be loaded"]);
        assert!(cluster.call(long(), add("p", 1)).await.is_ok(), "what is there goes on");
        let third = Library { version: 3, ..LIBRARY };
        Cluster::connect(world.nodes(), Vault::ANY, third).await.expect("an older one is replaced");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_node_is_enough_to_find_the_others_and_may_go() {
    for program in Program::all() {
        let mut world = World::cluster(program, 1, &QUICK).await;
        let dead = free_port();
        let mut nodes = at(Kind::Cluster, &[format!("redis://127.0.0.1:{dead}"), world.servers[0].url()]);
        nodes.patience.look_ms = 100;
        let cluster = connect(nodes).await;
        let load = Load::begin(&cluster, &numbers(12), 1);
        load.more(100).await;
        world.servers[0].kill();
        until(async || !cluster.map().primaries().iter().any(|place| place.port == world.servers[0].port))
            .await;
        load.more(500).await;
        // What was not waited for may be lost here; that it goes on is the claim.
        load.leave().await;
    }
}

fn tls_words(dir: &std::path::Path) -> Vec<String> {
    let Certificates { authority, certificate, key } = Certificates::in_dir(dir);
    let [authority, certificate, key] = [authority, certificate, key].map(|path| path.display().to_string());
    let words = format!(
        "--tls-port {{tls}} --tls-auth-clients no --tls-ca-cert-file {authority} --tls-cert-file {certificate} --tls-key-file {key}"
    );
    words.split(' ').map(str::to_owned).collect()
}

fn secure(server: &Server) -> String {
    format!("rediss://127.0.0.1:{}", server.tls)
}

#[tokio::test]
async fn under_tls_a_server_must_be_vouched_for_and_plain_text_gets_nowhere() {
    for program in Program::all() {
        let server = Server::start_with(program, tls_words);
        let tls = Tls { ca_file: Some(server.dir().join("authority.pem")), ..Tls::default() };
        let trusting = Nodes { tls, ..at(Kind::Redis, &[secure(&server)]) };
        let cluster = connect(trusting.clone()).await;
        assert!(cluster.call(long(), add("p", 1)).await.is_ok());
        // More than fits into what a socket takes at once.
        let calls = (0..400).map(|id| add("p", "x".repeat(10_000) + &id.to_string())).collect();
        assert!(cluster.calls(long(), calls).await.iter().all(Result::is_ok));
        let mut heard = cluster.subscribe("{p}:heads".into()).await;
        assert_eq!(heard.next().await, Some(overtake_valkey::cluster::Heard::Gap));
        let another = tempfile::tempdir().expect("a directory");
        let stranger = Certificates::in_dir(another.path()).authority;
        let wary = Nodes { tls: Tls { ca_file: Some(stranger), ..Tls::default() }, ..trusting.clone() };
        check(&why(wary).await, &["TLS with 127.0.0.1", "certificate"]);
        let plain = at(Kind::Redis, &[format!("redis://127.0.0.1:{}", server.tls)]);
        check(&why(plain).await, &[&server.tls.to_string(), "wants TLS"]);
        let mut to_plain = Nodes { nodes: vec![format!("rediss://127.0.0.1:{}", server.port)], ..trusting };
        to_plain.patience.connect_ms = 300;
        check(&why(to_plain).await, &["knows nothing of TLS"]);
    }
}

#[tokio::test]
async fn a_cluster_under_tls_is_followed_under_tls() {
    for program in Program::all() {
        let certificates = tempfile::tempdir().expect("a directory");
        let words = tls_words(certificates.path());
        // Redis 7.0 tells the ports for TLS only where nodes speak under TLS among themselves.
        let among_nodes = ["--tls-cluster", "yes", "--tls-replication", "yes"];
        let words: Vec<_> = words.iter().map(String::as_str).chain(among_nodes).collect();
        let world = World::cluster(program, 0, &words).await;
        let tls = Tls { ca_file: Some(certificates.path().join("authority.pem")), ..Tls::default() };
        let cluster = connect(Nodes { tls, ..at(Kind::Cluster, &[secure(&world.servers[0])]) }).await;
        let calls = numbers(30).iter().map(|tag| add(tag, 1)).collect();
        assert!(cluster.calls(long(), calls).await.iter().all(Result::is_ok));
        let ports: Vec<_> = cluster.map().primaries().iter().map(|place| place.port).collect();
        let mut secure: Vec<_> = world.servers.iter().map(|server| server.tls).collect();
        secure.sort_unstable();
        assert_eq!(ports, secure, "nobody was asked in plain text");
    }
}
