//! The brokers that are measured: each is started anew for each scenario, on loopback, in a directory of its own.

pub(super) mod callgrind;
mod commits;
mod overtake;
mod packed;
pub(crate) mod process;
mod rabbitmq;
mod sink;
pub(crate) mod usage;

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tempfile::TempDir;

use super::wire::amqp::{Address, Caller, Connection, Getter, Responder, Resting};
use super::wire::http::Http;
use super::wire::{Source, Taker, nats, redis, tube};
use process::Process;
use usage::Usage;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// Nobody: what the generator can do at most.
    Sink,
    Overtake,
    RabbitMq,
    Beanstalkd,
    /// As it is mostly run: what was confirmed may be lost.
    BeanstalkdUnsynced,
    /// With a queue of sorted sets and scripts, as its users write it.
    Redis,
    /// As it is mostly run: what was confirmed may be lost.
    RedisUnsynced,
    /// JetStream. Version 2.9 cannot sync before it confirms.
    NatsUnsynced,
    /// Whatever listens at an address somebody gave.
    Given,
}

impl Peer {
    pub(super) const ALL: [Self; 9] = [
        Self::Sink,
        Self::Overtake,
        Self::RabbitMq,
        Self::Beanstalkd,
        Self::BeanstalkdUnsynced,
        Self::Redis,
        Self::RedisUnsynced,
        Self::NatsUnsynced,
        Self::Given,
    ];

    /// In tables, and in `--peers`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sink => "sink",
            Self::Overtake => "overtake",
            Self::RabbitMq => "rabbitmq",
            Self::Beanstalkd => "beanstalkd",
            Self::BeanstalkdUnsynced => "beanstalkd-unsynced",
            Self::Redis => "redis",
            Self::RedisUnsynced => "redis-unsynced",
            Self::NatsUnsynced => "nats-unsynced",
            Self::Given => "url",
        }
    }

    /// When a confirmed message is on the disk, and how urgency is made where the broker has no priorities.
    pub(super) fn durability(self) -> &'static str {
        match self {
            Self::Sink => "keeps nothing",
            Self::Overtake => "fdatasync before each confirm, many messages in one",
            Self::RabbitMq => {
                "fsync before each confirm, many messages in one; classic queue, x-max-priority 9"
            }
            Self::Beanstalkd => "-b DIR -f0: fsync after each put and each delete",
            Self::BeanstalkdUnsynced => "-b DIR -F: never synced",
            Self::Redis => {
                "appendfsync always: fdatasync before each confirm, many messages in one; a sorted set and scripts"
            }
            Self::RedisUnsynced => "appendfsync everysec: synced each second; a sorted set and scripts",
            Self::NatsUnsynced => {
                "JetStream, file storage, synced every 2 minutes; it has no priorities: a work queue with a pull \
                 consumer for each level, asked in turn, the most urgent first"
            }
            Self::Given => "as its owner has it",
        }
    }

    /// By how much fewer messages it is given, so that it ends this day.
    pub(super) fn slowness(self) -> u64 {
        match self {
            Self::RabbitMq | Self::BeanstalkdUnsynced => 5,
            Self::Beanstalkd => 50,
            _ => 1,
        }
    }

    pub(super) fn is_amqp(self) -> bool {
        matches!(self, Self::Sink | Self::Overtake | Self::RabbitMq | Self::Given)
    }

    /// Starts it.
    ///
    /// # Errors
    /// Why it cannot be measured.
    pub(crate) fn start(self, url: &str) -> Result<Broker> {
        match self {
            Self::Sink => sink::start(),
            Self::Overtake => overtake::start(),
            Self::RabbitMq => rabbitmq::start(),
            Self::Beanstalkd => packed::beanstalkd("-f0"),
            Self::BeanstalkdUnsynced => packed::beanstalkd("-F"),
            Self::Redis => packed::redis("always"),
            Self::RedisUnsynced => packed::redis("everysec"),
            Self::NatsUnsynced => packed::nats(),
            Self::Given => given(url),
        }
    }
}

/// How it is spoken to.
#[derive(Clone, Debug)]
pub(crate) enum Dial {
    Amqp(Address),
    Tube(SocketAddr),
    Redis(SocketAddr),
    Nats(SocketAddr),
}

/// A broker that listens. It ends when this does, and its directory goes.
pub(crate) struct Broker {
    dial: Dial,
    /// Of ours, where it speaks HTTP.
    http: Option<SocketAddr>,
    version: String,
    process: Option<Process>,
    _dir: Option<TempDir>,
}

impl Broker {
    /// Its URL, if it speaks AMQP.
    pub(crate) fn url(&self) -> Option<String> {
        match &self.dial {
            Dial::Amqp(address) => Some(format!("amqp://{}", address.socket)),
            _ => None,
        }
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// `None` of the sink, and of a broker on another machine.
    pub(crate) fn usage(&self) -> Option<Usage> {
        match (&self.process, &self.dial) {
            (Some(process), _) => Some(process.usage()),
            (None, Dial::Amqp(address)) => Usage::listening(address.socket).filter(|usage| !usage.is_own()),
            (None, _) => None,
        }
    }

    pub(crate) fn declare(&self, queue: &str) -> Result<()> {
        match &self.dial {
            Dial::Amqp(address) => {
                let mut connection = Connection::open(address)?;
                connection.declare(queue)?;
                connection.close()
            }
            Dial::Nats(address) => nats::declare(*address, queue),
            Dial::Tube(_) | Dial::Redis(_) => Ok(()),
        }
    }

    pub(super) fn source(&self, queue: &str) -> Result<Box<dyn Source>> {
        Ok(match &self.dial {
            Dial::Amqp(address) => Box::new(Connection::open(address)?.publisher(queue)?),
            Dial::Tube(address) => Box::new(tube::Putter::open(*address, queue)?),
            Dial::Redis(address) => Box::new(redis::Putter::open(*address, queue)?),
            Dial::Nats(address) => Box::new(nats::Publisher::open(*address, queue)?),
        })
    }

    /// It gets so many messages at most at once.
    pub(super) fn taker(&self, queue: &str, prefetch: u16) -> Result<Box<dyn Taker>> {
        Ok(match &self.dial {
            Dial::Amqp(address) => Box::new(Connection::open(address)?.consumer(queue, prefetch)?),
            Dial::Tube(address) => Box::new(tube::Reserver::open(*address, queue, prefetch)?),
            Dial::Redis(address) => Box::new(redis::Worker::open(*address, queue, prefetch)?),
            Dial::Nats(address) => Box::new(nats::Puller::open(*address, queue, prefetch)?),
        })
    }

    /// An AMQP connection with one channel that does nothing.
    pub(super) fn idle(&self) -> Result<Resting> {
        self.connect().map(Connection::rest)
    }

    pub(super) fn getter(&self, queue: &str) -> Result<Getter> {
        self.connect().map(|connection| connection.getter(queue))
    }

    /// Calls go to this queue.
    pub(super) fn caller(&self, queue: &str) -> Result<Caller> {
        self.connect()?.caller(queue)
    }

    pub(super) fn responder(&self, queue: &str) -> Result<Responder> {
        self.connect()?.responder(queue)
    }

    /// `None` where it does not speak our HTTP.
    pub(super) fn http(&self) -> Result<Option<Http>> {
        self.http.map(Http::open).transpose()
    }

    fn connect(&self) -> Result<Connection> {
        match &self.dial {
            Dial::Amqp(address) => Connection::open(address),
            _ => bail!("it does not speak AMQP"),
        }
    }

    /// Nothing is left of what was acknowledged; counts may follow a little later.
    ///
    /// # Errors
    /// When something is.
    pub(super) fn is_empty(&self, queue: &str) -> Result<()> {
        let depth = || match &self.dial {
            Dial::Amqp(address) => {
                let mut connection = Connection::open(address)?;
                let depth = connection.depth(queue)?;
                connection.close()?;
                Ok(depth)
            }
            Dial::Tube(address) => tube::depth(*address, queue),
            Dial::Redis(address) => redis::depth(*address, queue),
            Dial::Nats(address) => nats::depth(*address, queue),
        };
        let mut left = 0;
        let empty = wait_until(Duration::from_secs(10), || {
            left = depth()?;
            Ok((left == 0).then_some(()))
        });
        empty.with_context(|| format!("{left} are left in {queue} after all was acknowledged"))
    }
}

/// Asks again and again until there is something, or it takes too long.
fn wait_until<T>(most: Duration, mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    loop {
        match look() {
            Ok(Some(found)) => return Ok(found),
            Ok(None) if start.elapsed() > most => bail!("not within {} s", most.as_secs()),
            Err(error) if start.elapsed() > most => return Err(error),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn given(url: &str) -> Result<Broker> {
    let address = parse_url(url)?;
    let version = Connection::product(address.socket)?;
    Ok(Broker { dial: Dial::Amqp(address), http: None, version, process: None, _dir: None })
}

/// `amqp://[user:password@]host[:port][/vhost]`, with `%2f` for a slash.
fn parse_url(url: &str) -> Result<Address> {
    let rest = url.strip_prefix("amqp://").context("an address begins with amqp://")?;
    let (authority, vhost) = rest.split_once('/').unwrap_or((rest, ""));
    let (login, host) = authority.rsplit_once('@').unwrap_or(("guest:guest", authority));
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let host = if host.contains(':') { host.to_owned() } else { format!("{host}:5672") };
    let mut sockets = host.to_socket_addrs().with_context(|| format!("looking for {host}"))?;
    let socket = sockets.next().with_context(|| format!("{host} is nowhere"))?;
    let vhost = if vhost.is_empty() { "/".to_owned() } else { vhost.replace("%2f", "/").replace("%2F", "/") };
    Ok(Address { socket, user: user.to_owned(), password: password.to_owned(), vhost })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_who_where_and_which() {
        let said = |url| {
            let Address { socket, user, password, vhost } = parse_url(url).expect("an address");
            format!("{user} {password} {socket} {vhost}")
        };
        assert_eq!(said("amqp://127.0.0.1"), "guest guest 127.0.0.1:5672 /");
        assert_eq!(said("amqp://a:b@127.0.0.1:7/x%2Fy"), "a b 127.0.0.1:7 x/y");
        assert!(parse_url("http://127.0.0.1").is_err());
    }
}
