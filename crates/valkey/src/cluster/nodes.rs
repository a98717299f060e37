//! Which servers to go to, as the settings say it.

use std::time::Duration;

use overtake_peer::redis::RedisServer;
use overtake_peer::{Named, Secret, Tls, Vault};
use serde::Deserialize;

/// One server, or a cluster of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// One server, which holds everything.
    Redis,
    /// A cluster, whose nodes say which of them holds what.
    Cluster,
}

/// Which servers to go to, who asks, and how patient to be.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nodes {
    /// One server or a cluster.
    pub kind: Kind,
    /// URLs without passwords: of the one server, `redis://HOST:6379/DATABASE`; of some nodes of the cluster, of which one that answers is enough. `rediss`, `valkey` and
    /// `valkeys` are known, too; the second and the last mean TLS, for every node.
    pub nodes: Vec<String>,
    /// Who asks; must be said with a password.
    #[serde(default)]
    pub username: Option<String>,
    /// Where the password is.
    #[serde(default)]
    pub password: Option<Secret>,
    /// Whom to believe, where the URLs mean TLS. A node is known by the name under which the cluster tells of it
    /// (`cluster-announce-hostname`, `cluster-preferred-endpoint-type`).
    #[serde(default)]
    pub tls: Tls,
    /// When a write counts as done.
    #[serde(default)]
    pub durability: Durability,
    /// How patient to be.
    #[serde(default)]
    pub patience: Patience,
    /// Connections to each node that holds slots; the calls of one slot all use the same.
    #[serde(default = "connections")]
    pub connections: u8,
}

fn connections() -> u8 {
    2
}

/// When a write counts as done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Durability {
    /// How many replicas must have it in memory. It is lost only with the primary and all of these, or where one is promoted that is none of
    /// these: so say as many as can be promoted.
    pub replicas_acked: u32,
    /// It must be in the append-only files of the primary and of so many replicas (`WAITAOF`, from Redis 7.2 and Valkey 7.2 on).
    pub is_fsync_acked: bool,
}

impl Durability {
    /// Whether an answer waits for anything but the primary's word.
    #[must_use]
    pub fn is_waited_for(self) -> bool {
        self.replicas_acked > 0 || self.is_fsync_acked
    }
}

/// How patient to be, milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Patience {
    /// Until there is a connection, logged in.
    pub connect_ms: u64,
    /// Until an answer comes; then the connection counts as lost.
    pub answer_ms: u64,
    /// Until replicas have acknowledged what was written; then they are asked again.
    pub replicas_ms: u64,
    /// Until what was written counts as in doubt, since too few replicas have it: they may lack it for hours.
    pub shortfall_ms: u64,
    /// Between two looks at who holds what, when nothing suggests one.
    pub look_ms: u64,
    /// Before the second attempt at anything; doubled for each one after it, and made a little longer or shorter by chance.
    pub backoff_first_ms: u64,
    /// The longest of these.
    pub backoff_max_ms: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect_ms: 2_000,
            answer_ms: 5_000,
            replicas_ms: 1_000,
            shortfall_ms: 2_000,
            look_ms: 5_000,
            backoff_first_ms: 5,
            backoff_max_ms: 500,
        }
    }
}

impl Patience {
    pub(crate) fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(crate) fn answer(&self) -> Duration {
        Duration::from_millis(self.answer_ms)
    }

    pub(crate) fn look(&self) -> Duration {
        Duration::from_millis(self.look_ms)
    }

    /// Before another attempt, after so many have failed.
    pub(crate) fn backoff(&self, failed: u32) -> Duration {
        let Some(doublings) = failed.checked_sub(1) else { return Duration::ZERO };
        let longest = self.backoff_max_ms.max(1);
        let ms = self.backoff_first_ms.saturating_mul(1 << doublings.min(20)).min(longest);
        // Between a half and the whole, so that those who failed together do not come back together.
        let chance = u64::from(getrandom::u32().unwrap_or_default());
        Duration::from_micros(ms * 500 + chance * ms * 500 / u64::from(u32::MAX))
    }
}

impl Nodes {
    /// One server or a cluster at these URLs, and the rest as it is where nothing is said.
    #[must_use]
    pub fn new(kind: Kind, nodes: Vec<String>) -> Self {
        Self {
            kind,
            nodes,
            username: None,
            password: None,
            tls: Tls::default(),
            durability: Durability::default(),
            patience: Patience::default(),
            connections: connections(),
        }
    }

    /// # Errors
    /// What is wrong with the settings, as a phrase.
    pub fn servers(&self, vault: Vault) -> Result<Vec<RedisServer>, String> {
        let named = |url| Named {
            url,
            username: self.username.as_deref(),
            password: self.password.as_ref(),
            tls: &self.tls,
        };
        let servers: Result<Vec<_>, String> =
            self.nodes.iter().map(|url| RedisServer::new(vault, &named(url))).collect();
        let servers = servers?;
        self.check(&servers)?;
        Ok(servers)
    }

    fn check(&self, servers: &[RedisServer]) -> Result<(), String> {
        if self.connections == 0 {
            return Err("`connections` must be 1 at least".to_owned());
        }
        let patience = &self.patience;
        let times = [
            ("connect_ms", patience.connect_ms),
            ("answer_ms", patience.answer_ms),
            ("replicas_ms", patience.replicas_ms),
            ("look_ms", patience.look_ms),
            ("backoff_first_ms", patience.backoff_first_ms),
        ];
        if let Some((name, _)) = times.iter().find(|(_, ms)| *ms == 0) {
            return Err(format!("`patience.{name}` must be 1 at least"));
        }
        match (self.kind, servers) {
            (_, []) => Err("`nodes` names no server: say where one is, as redis://HOST:6379".to_owned()),
            (Kind::Redis, [_]) => Ok(()),
            (Kind::Redis, _) => {
                Err("with kind = \"redis\" `nodes` names one server; several that share the work \
                                     are kind = \"cluster\""
                    .to_owned())
            }
            (Kind::Cluster, servers) if servers.iter().any(|server| server.database() != 0) => {
                Err("a cluster has no databases: leave the number out at the end of the URL".to_owned())
            }
            (Kind::Cluster, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(nodes: &Nodes) -> String {
        nodes.servers(Vault::ANY).err().expect("refused")
    }

    #[test]
    fn settings_that_mean_nothing_are_refused_with_what_to_do() {
        let urls = |urls: &[&str]| urls.iter().map(|url| (*url).to_owned()).collect::<Vec<_>>();
        assert!(why(&Nodes::new(Kind::Cluster, vec![])).contains("names no server"));
        assert!(
            why(&Nodes::new(Kind::Redis, urls(&["redis://a", "redis://b"]))).contains("kind = \"cluster\"")
        );
        assert!(why(&Nodes::new(Kind::Cluster, urls(&["redis://a/1"]))).contains("no databases"));
        assert!(why(&Nodes::new(Kind::Cluster, urls(&["http://a"]))).contains("must begin with redis://"));
        assert!(
            why(&Nodes { connections: 0, ..Nodes::new(Kind::Redis, urls(&["redis://a"])) })
                .contains("1 at least")
        );
        let named = Nodes { username: Some("ada".into()), ..Nodes::new(Kind::Redis, urls(&["redis://a"])) };
        assert!(why(&named).contains("say it in `password`"));
    }

    #[test]
    fn waits_grow_to_the_longest_and_stay_there() {
        let patience = Patience::default();
        assert_eq!(patience.backoff(0), Duration::ZERO);
        let max = Duration::from_millis(patience.backoff_max_ms);
        for failed in 1..100 {
            let wait = patience.backoff(failed);
            let whole = Duration::from_millis(5 << (failed - 1).min(20)).min(max);
            assert!(whole / 2 <= wait && wait <= whole, "{failed}: {wait:?}");
        }
    }
}
