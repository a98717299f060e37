//! What endpoints and sources have in common: a name in a virtual host, a definition, and work that goes on by it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use overtake_access::{Denied, Desk, NotDone};
use overtake_engine::{Clock, Connection, Failure, Leader, SystemClock};
use overtake_lane::{Refusal, Scheme, Time, VHOST_DEFAULT_NAME, VhostId, check_name};
use overtake_peer::Vault;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Something on its way.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// An endpoint or a source, as it is defined.
pub trait Connector: Clone + PartialEq + Serialize + DeserializeOwned + Send + Sync + 'static {
    /// It as it stands.
    type View: Clone + fmt::Debug + Send + 'static;
    /// What it is called.
    const WORDS: Words;

    /// Whether it can be, as far as that can be known without an engine and a connection. Asked where it is configured or put over the API; a start and a trial ask the same, but for
    /// what only has no effect: one that is stored goes on.
    ///
    /// # Errors
    /// The first [`Flaw`].
    fn check(&self, place: &Place) -> Result<(), Flaw>;

    /// Whether the one of this name can be beside queues of which this is known: the scheme of a queue, by its name.
    ///
    /// # Errors
    /// The first [`Flaw`].
    fn check_beside(&self, name: &str, scheme: &dyn Fn(&str) -> Option<Scheme>) -> Result<(), Flaw>;

    /// Begins its work.
    ///
    /// # Errors
    /// [`NotConfigured`]: it cannot be.
    fn start(self: Arc<Self>, site: Site) -> Pending<'static, Result<Running<Self::View>, NotConfigured>>;

    /// Whether its work could begin here. Nothing is connected, written, sent or taken.
    ///
    /// # Errors
    /// [`NotConfigured`]: it cannot be.
    fn could_start(self: Arc<Self>, site: Site) -> Pending<'static, Result<(), NotConfigured>>;

    /// Connects as its work would, and sends or takes nothing.
    ///
    /// # Errors
    /// [`NotConfigured`]: it cannot be; within: what is wrong, as a phrase.
    fn try_out(self: Arc<Self>, site: Site) -> Pending<'static, Result<Result<(), String>, NotConfigured>>;

    /// Whether somebody may see the one of this name.
    fn is_seen_by(&self, by: &Desk, name: &str) -> bool;

    /// How it stands where its work does not go on here: what went wrong last, and when.
    fn at_rest(error: Option<(Time, Arc<str>)>) -> Self::View;

    /// Its work is gone for good: what else is kept of it may go.
    fn kept_besides(_ours: &str) -> Vec<String> {
        Vec::new()
    }
}

/// What a kind of connector is called.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// One of them.
    pub noun: &'static str,
    /// Before the keys of metadata under which they are kept: `ROOM/NUMBER/NAME`, by the number of the virtual host, which no other ever has, and the
    /// name, percent-encoded.
    pub room: &'static str,
    /// What is audited: made or changed, deleted, paused, resumed.
    pub deeds: [&'static str; 4],
}

/// Where one of them stands: what its definition is read with.
#[derive(Clone)]
pub struct Place {
    /// Its name.
    pub name: Arc<str>,
    /// Its virtual host.
    pub vhost: VhostId,
    /// What that is called.
    pub vhost_name: Arc<str>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Which secrets it may name.
    pub vault: Vault,
}

/// Where one of them works.
#[derive(Clone)]
pub struct Site {
    /// Where it stands.
    pub place: Place,
    /// Of a session of its own, in the virtual host.
    pub engine: Connection,
    /// The name of this life of the broker, which no other of any broker has.
    pub life: Arc<str>,
    /// The connector begins paused: nothing is sent or taken before somebody resumes it.
    pub is_paused: bool,
}

impl Place {
    /// That of one that stands in a server's configuration, which need not be this machine's: nothing is read that is named there.
    pub(crate) fn in_file(name: &str) -> Self {
        Self {
            name: name.into(),
            vhost: VhostId::DEFAULT,
            vhost_name: VHOST_DEFAULT_NAME.into(),
            clock: Arc::new(SystemClock),
            vault: Vault::CLOSED,
        }
    }

    /// The number of the virtual host, and its name, percent-encoded.
    pub(crate) fn ours(&self) -> String {
        ours_of(self.vhost, &self.name)
    }

    /// How others may know it who keep something for it, such as a group of consumers: `overtake-NAME`, and `overtake-NAME@VHOST` outside the virtual
    /// host `/`.
    pub(crate) fn known_as(&self) -> String {
        if self.vhost == VhostId::DEFAULT {
            return format!("overtake-{}", self.name);
        }
        format!("overtake-{}@{}", self.name, self.vhost_name)
    }
}

pub(crate) fn ours_of(vhost: VhostId, name: &str) -> String {
    format!("{}/{}", vhost.0, utf8_percent_encode(name, NON_ALPHANUMERIC))
}

/// Why a definition cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The part of it that is wrong, as `to.webhook`; empty: it as a whole.
    pub part: String,
    /// What is wrong with that, as a phrase. Where it is one key, that comes first, in backticks.
    pub why: String,
}

impl Flaw {
    pub(crate) fn of(part: impl Into<String>, why: impl fmt::Display) -> Self {
        Self { part: part.into(), why: why.to_string() }
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part.as_str() {
            "" => f.write_str(&self.why),
            part => write!(f, "{part}: {}", self.why),
        }
    }
}

impl std::error::Error for Flaw {}

/// Whether a queue can be called so.
///
/// # Errors
/// It cannot, with the key that says so.
pub(crate) fn must_name_a_queue(key: &str, name: &str) -> Result<(), Flaw> {
    check_name(name).map_err(|refusal| Flaw::of("", format_args!("`{key}`: {refusal}")))
}

/// Work that goes on until nobody controls it any more.
pub struct Running<V> {
    pub(crate) control: mpsc::Sender<Control<V>>,
    pub(crate) task: JoinHandle<()>,
}

/// So many words to one that works may wait; whoever has another one waits, too.
pub(crate) const WORDS_MAX: usize = 16;

/// What work is told from outside.
pub(crate) enum Control<V> {
    Pause,
    Resume,
    View(oneshot::Sender<V>),
}

/// Where a connector is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Provenance {
    /// The configuration of the server: it is changed there.
    File,
    /// The API.
    Api,
}

impl Provenance {
    pub(crate) fn vault(self) -> Vault {
        match self {
            Self::File => Vault::ANY,
            Self::Api => Vault::OF_API,
        }
    }
}

/// A connector as it stands.
#[derive(Clone, Debug)]
pub struct ConnectorView<C: Connector> {
    /// Its name.
    pub name: Arc<str>,
    /// What it is.
    pub definition: Arc<C>,
    /// Where it is from.
    pub provenance: Provenance,
    /// It does nothing until it is resumed.
    pub is_paused: bool,
    /// The broker where it works; its name is known where there may be several.
    pub leader: Leader,
    /// What it does, as far as it does that here.
    pub work: C::View,
}

/// Why a connector was not made, changed, shown, tested or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotConfigured {
    /// It cannot have this name.
    BadName,
    /// There is none of this name that one may see.
    NoSuch,
    /// There are too many.
    TooMany,
    /// It cannot be, as a phrase.
    Bad(String),
    /// It is from the server's configuration, and changed there.
    OfFile,
    /// The user may not, or the engine does not.
    NotDone(NotDone),
}

/// Most connectors of a kind.
pub(crate) const CONNECTORS_MAX: usize = 1_000;
/// Longest name, bytes.
pub(crate) const NAME_LEN_MAX: usize = 200;

impl fmt::Display for NotConfigured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName => {
                write!(f, "the name is 1 to {NAME_LEN_MAX} bytes of text without control characters")
            }
            Self::NoSuch => f.write_str("there is none of this name"),
            Self::TooMany => write!(f, "there are {CONNECTORS_MAX}, and there may be no more"),
            Self::Bad(why) => f.write_str(why),
            Self::OfFile => f.write_str("it stands in the server's configuration file: change it there"),
            Self::NotDone(not) => not.fmt(f),
        }
    }
}

impl std::error::Error for NotConfigured {}

impl NotConfigured {
    /// Whether its virtual host is not there any more.
    pub(crate) fn is_of_gone_vhost(&self) -> bool {
        let Self::NotDone(NotDone::Failed(Failure::Refused(refused))) = self else { return false };
        refused.refusal == Refusal::NoSuchVhost
    }
}

impl From<Flaw> for NotConfigured {
    fn from(flaw: Flaw) -> Self {
        Self::Bad(flaw.to_string())
    }
}

impl From<NotDone> for NotConfigured {
    fn from(not: NotDone) -> Self {
        Self::NotDone(not)
    }
}

impl From<Denied> for NotConfigured {
    fn from(denied: Denied) -> Self {
        Self::NotDone(denied.into())
    }
}

impl From<Failure> for NotConfigured {
    fn from(failure: Failure) -> Self {
        Self::NotDone(failure.into())
    }
}

#[cfg(test)]
mod tests {
    use overtake_peer::LinkLocal;
    use serde_json::{Value, json};

    use super::*;
    use crate::{Endpoint, Source};

    fn flaw<C: Connector>(definition: Value, vault: Vault) -> Option<Flaw> {
        let definition: C = serde_json::from_value(definition).expect("a definition");
        definition.check(&Place { vault, ..Place::in_file("x") }).err()
    }

    /// Whether a definition is refused for its link-local address, and only for that.
    fn check<C: Connector>(definition: &Value) {
        let configured = Vault::ANY.with_link_local(LinkLocal::Refused);
        for vault in [Vault::OF_API, configured] {
            let flaw = flaw::<C>(definition.clone(), vault).expect("refused");
            assert!(flaw.why.contains("--link-local-targets"), "{definition}: {flaw}");
            let allowed = vault.with_link_local(LinkLocal::Allowed);
            let otherwise = self::flaw::<C>(definition.clone(), allowed);
            // Kafka is not in every build.
            assert!(
                otherwise.is_none_or(|flaw| flaw.why.contains("this build has no Kafka")),
                "{definition}"
            );
        }
    }

    #[test]
    fn no_kind_of_connector_names_a_link_local_address() {
        let host = "169.254.169.254";
        check::<Endpoint>(&json!({"to": {"webhook": {"url": format!("http://{host}/latest")}}}));
        check::<Endpoint>(&json!({"to": {"amqp": {"url": format!("amqp://{host}")}}}));
        check::<Endpoint>(&json!({"to": {"kafka": {"brokers": [format!("{host}:9092")], "topic": "t"}}}));
        check::<Source>(
            &json!({"from": {"amqp": {"url": format!("amqp://{host}"), "queue": "q"}}, "to": {"queue": "q"}}),
        );
        #[cfg(feature = "mqtt")]
        {
            check::<Endpoint>(&json!({"to": {"mqtt": {"url": format!("mqtt://{host}"), "topic": "t"}}}));
            let from = json!({"url": format!("mqtt://{host}"), "topics": ["t"], "client_id": "c"});
            check::<Source>(&json!({"from": {"mqtt": from}, "to": {"queue": "q"}}));
        }
        #[cfg(feature = "redis")]
        {
            check::<Endpoint>(&json!({"to": {"redis": {"url": format!("redis://{host}"), "stream": "s"}}}));
            let from = json!({"url": format!("redis://{host}"), "streams": ["s"]});
            check::<Source>(&json!({"from": {"redis": from}, "to": {"queue": "q"}}));
        }
    }
}
