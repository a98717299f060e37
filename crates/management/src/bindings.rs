//! Bindings. One is known by its source, its destination and its `properties_key`: the routing key, and where there are
//! arguments a digest of them behind a `~`, as RabbitMQ has it.

use overtake_access::{Desk, Tag};
use overtake_amqp::connection as amqp;
use overtake_amqp_session::arguments;
use overtake_lane::{Binding, Destination};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, done, seen};
use crate::ask::Ask;
use crate::problem::Problem;
use crate::queues::made_at;
use crate::routes::Routes;
use crate::{exchanges, lenient, paging, queues, tables};

const TO_QUEUE: &str = "/api/bindings/{vhost}/e/{source}/q/{destination}";
const TO_EXCHANGE: &str = "/api/bindings/{vhost}/e/{source}/e/{destination}";
const ONE_TO_QUEUE: &str = "/api/bindings/{vhost}/e/{source}/q/{destination}/{properties}";
const ONE_TO_EXCHANGE: &str = "/api/bindings/{vhost}/e/{source}/e/{destination}/{properties}";

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/bindings", list)
        .get(Tag::Management, "/api/bindings/{vhost}", list)
        .get(Tag::Management, TO_QUEUE, async |ask: Ask| between(&ask, queue(&ask)).await)
        .post(Tag::Management, TO_QUEUE, async |ask: Ask| bind(&ask, queue(&ask)).await)
        .get(Tag::Management, ONE_TO_QUEUE, async |ask: Ask| show(&ask, queue(&ask)).await)
        .delete(Tag::Management, ONE_TO_QUEUE, async |ask: Ask| unbind(&ask, queue(&ask)).await)
        .get(Tag::Management, TO_EXCHANGE, async |ask: Ask| between(&ask, exchange(&ask)).await)
        .post(Tag::Management, TO_EXCHANGE, async |ask: Ask| bind(&ask, exchange(&ask)).await)
        .get(Tag::Management, ONE_TO_EXCHANGE, async |ask: Ask| show(&ask, exchange(&ask)).await)
        .delete(Tag::Management, ONE_TO_EXCHANGE, async |ask: Ask| unbind(&ask, exchange(&ask)).await)
}

fn queue(ask: &Ask) -> Destination {
    Destination::Queue(ask.named("destination").into())
}

fn exchange(ask: &Ask) -> Destination {
    Destination::Exchange(exchanges::meant(ask.named("destination")).into())
}

/// How a binding is told from others between the same two.
fn properties_key(binding: &Binding) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    match (binding.routing_key.is_empty(), binding.arguments.is_empty()) {
        (true, true) => "~".to_owned(),
        (false, true) => plain(&binding.routing_key),
        (_, false) => format!("{}~{}", encoded(&binding.routing_key), digest(&binding.arguments)),
    }
}

/// A routing key that a path and a reader can bear: dots, dashes and the wildcards of topics stay.
fn plain(key: &str) -> String {
    const LEFT: &percent_encoding::AsciiSet =
        &NON_ALPHANUMERIC.remove(b'.').remove(b'-').remove(b'_').remove(b'*');
    utf8_percent_encode(key, LEFT).to_string()
}

/// FNV-1a of 64 bits: it has to tell a few bindings apart, and to be the same tomorrow.
fn digest(bytes: &[u8]) -> String {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", bytes.iter().fold(0xcbf2_9ce4_8422_2325, step))
}

pub(crate) fn shown(vhost: &str, binding: &Binding) -> Value {
    let kind = match binding.to {
        Destination::Queue(_) => "queue",
        Destination::Exchange(_) => "exchange",
    };
    json!({
        "source": binding.exchange,
        "vhost": vhost,
        "destination": binding.to.name(),
        "destination_type": kind,
        "routing_key": binding.routing_key,
        "arguments": tables::remembered(&binding.arguments),
        "properties_key": properties_key(binding),
    })
}

/// Each queue is bound to the exchange without a name by its own.
fn by_name(queue: &str) -> Binding {
    Binding::new("", Destination::Queue(queue.into()), queue)
}

/// Every binding that was made and may be seen at a desk.
pub(crate) async fn made(desk: &Desk) -> Result<Vec<Binding>, Problem> {
    let mut all = Vec::new();
    for exchange in desk.exchanges().await? {
        all.extend(desk.bindings(&exchange.name).await?);
    }
    all.retain(|binding| desk.who().sees(desk.vhost(), binding.to.name()));
    Ok(all)
}

async fn every(desk: &Desk) -> Result<Vec<Binding>, Problem> {
    let mut all: Vec<Binding> = queues::all(desk).await?.iter().map(|queue| by_name(&queue.name)).collect();
    all.extend(made(desk).await?);
    Ok(all)
}

async fn list(ask: Ask) -> Answer {
    let mut items = Vec::new();
    for desk in ask.desks().await? {
        items.extend(every(&desk).await?.iter().map(|binding| shown(desk.vhost(), binding)));
    }
    paging::list(&ask, items)
}

fn told(desk: &Desk, bindings: impl IntoIterator<Item = Binding>) -> Answer {
    let all: Vec<Value> = bindings.into_iter().map(|binding| shown(desk.vhost(), &binding)).collect();
    seen(&all.into())
}

/// What leads to a queue.
pub(crate) async fn of_queue(ask: Ask) -> Answer {
    let desk = ask.desk().await?;
    let name = desk.queue(ask.named("name")).await?.name;
    let to = Destination::Queue(name.clone());
    let made = made(&desk).await?.into_iter().filter(|binding| binding.to == to);
    told(&desk, [by_name(&name)].into_iter().chain(made))
}

/// What leads from an exchange.
pub(crate) async fn from_exchange(ask: Ask) -> Answer {
    let desk = ask.desk().await?;
    let all = match exchanges::meant(ask.named("name")) {
        "" => queues::all(&desk).await?.iter().map(|queue| by_name(&queue.name)).collect(),
        name => desk.bindings(name).await?,
    };
    told(&desk, all)
}

/// What leads to an exchange.
pub(crate) async fn to_exchange(ask: Ask) -> Answer {
    let desk = ask.desk().await?;
    let name = exchanges::meant(ask.named("name"));
    if !name.is_empty() {
        desk.exchange(name).await?;
    }
    let to = Destination::Exchange(name.into());
    told(&desk, made(&desk).await?.into_iter().filter(|binding| binding.to == to))
}

/// The bindings between the two that the path names.
async fn pair(ask: &Ask, desk: &Desk, to: &Destination) -> Result<Vec<Binding>, Problem> {
    match to {
        Destination::Queue(name) => drop(desk.queue(name).await?),
        Destination::Exchange(name) => drop(desk.exchange(name).await?),
    }
    let source = exchanges::meant(ask.named("source"));
    if source.is_empty() {
        let is_queue = matches!(to, Destination::Queue(_));
        return Ok(is_queue.then(|| by_name(to.name())).into_iter().collect());
    }
    let mut all = desk.bindings(source).await?;
    all.retain(|binding| binding.to == *to);
    Ok(all)
}

async fn between(ask: &Ask, to: Destination) -> Answer {
    let desk = ask.desk().await?;
    let all = pair(ask, &desk, &to).await?;
    told(&desk, all)
}

/// A binding as a tool makes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct BindingPut {
    pub(crate) routing_key: String,
    #[serde(deserialize_with = "lenient::object")]
    pub(crate) arguments: Map<String, Value>,
}

impl BindingPut {
    /// The same as the engine has it.
    pub(crate) fn binding(&self, source: &str, to: &Destination, vhost: &str) -> Result<Binding, Problem> {
        let destination = match to {
            Destination::Queue(name) => amqp::Destination::Queue(name.to_string()),
            Destination::Exchange(name) => amqp::Destination::Exchange(name.to_string()),
        };
        let link = amqp::Link {
            source: source.to_owned(),
            destination,
            routing_key: self.routing_key.clone(),
            arguments: tables::table(&self.arguments)?,
        };
        Ok(arguments::binding(&link, vhost)?)
    }
}

async fn bind(ask: &Ask, to: Destination) -> Answer {
    let desk = ask.desk().await?;
    let source = exchanges::meant(ask.named("source"));
    let binding = ask.body::<BindingPut>()?.binding(source, &to, desk.vhost())?;
    let key = properties_key(&binding);
    desk.bind(binding).await?;
    // Relative to the path that it was posted to.
    Ok(made_at(&format!("{}/{key}", to.name())))
}

async fn found(ask: &Ask, desk: &Desk, to: &Destination) -> Result<Binding, Problem> {
    let wanted = ask.named("properties");
    let all = pair(ask, desk, to).await?;
    let is_it = |binding: &Binding| {
        let key = properties_key(binding);
        // A path is decoded on its way here.
        key == wanted || percent_encoding::percent_decode_str(&key).decode_utf8_lossy() == wanted
    };
    all.into_iter().find(is_it).ok_or_else(Problem::not_found)
}

async fn show(ask: &Ask, to: Destination) -> Answer {
    let desk = ask.desk().await?;
    let binding = found(ask, &desk, &to).await?;
    seen(&shown(desk.vhost(), &binding))
}

async fn unbind(ask: &Ask, to: Destination) -> Answer {
    let desk = ask.desk().await?;
    let binding = found(ask, &desk, &to).await?;
    if binding.exchange.is_empty() {
        return Err(Problem::denied("operation not permitted on the default exchange"));
    }
    desk.unbind(binding).await?;
    done()
}
