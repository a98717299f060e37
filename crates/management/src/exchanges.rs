//! Exchanges: listed, shown, declared, deleted.

use std::sync::Arc;

use overtake_access::{DEFAULT_EXCHANGE, Desk, NotDone, Tag};
use overtake_amqp::connection as amqp;
use overtake_amqp_session::{arguments, differs};
use overtake_engine::Failure;
use overtake_lane::{ExchangeKind, ExchangeSettings, ExchangeView, Refusal};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, done, put};
use crate::app::App;
use crate::ask::Ask;
use crate::problem::Problem;
use crate::rates::{ExchangeCounts, OF_EXCHANGES, Watched};
use crate::routes::Routes;
use crate::{bindings, lenient, messages, paging, tables};

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .get(Tag::Management, "/api/exchanges", list)
        .get(Tag::Management, "/api/exchanges/{vhost}", list)
        .get(Tag::Management, "/api/exchanges/{vhost}/{name}", show)
        .put(Tag::Management, "/api/exchanges/{vhost}/{name}", declare)
        .delete(Tag::Management, "/api/exchanges/{vhost}/{name}", delete)
        .get(Tag::Management, "/api/exchanges/{vhost}/{name}/bindings/source", bindings::from_exchange)
        .get(Tag::Management, "/api/exchanges/{vhost}/{name}/bindings/destination", bindings::to_exchange)
        .post(Tag::Management, "/api/exchanges/{vhost}/{name}/publish", messages::publish)
}

/// The name that is meant in a path: the exchange without a name has one there.
pub(crate) fn meant(name: &str) -> &str {
    if name == DEFAULT_EXCHANGE { "" } else { name }
}

/// The exchange without a name, which is not listed with the others. It is there for everybody; what is published to it is told to
/// those who may see it.
async fn nameless(desk: &Desk) -> ExchangeView {
    if let Ok(view) = desk.exchange("").await {
        return view;
    }
    let settings = ExchangeSettings::new(ExchangeKind::Direct);
    ExchangeView {
        name: "".into(),
        settings,
        bindings: 0,
        policy: None,
        alternate: None,
        published: 0,
        routed: 0,
    }
}

/// Every exchange that may be seen at a desk, the nameless one first.
pub(crate) async fn all(desk: &Desk) -> Result<Vec<ExchangeView>, Problem> {
    let mut all = vec![nameless(desk).await];
    all.extend(desk.exchanges().await?);
    Ok(all)
}

fn shown(app: &App, vhost: &Arc<str>, exchange: &ExchangeView) -> Value {
    let settings = &exchange.settings;
    let mut shown = json!({
        "name": exchange.name,
        "vhost": vhost,
        "type": arguments::kind_name(settings),
        "durable": settings.durable,
        "auto_delete": settings.auto_delete,
        "internal": settings.internal,
        "arguments": tables::remembered(&settings.arguments),
        "policy": exchange.policy,
        "user_who_performed_action": "",
    });
    // As in RabbitMQ, where nothing was published there are no counters.
    if exchange.published > 0 {
        let samples = app.rates.exchange(vhost, &exchange.name);
        shown["message_stats"] = samples.counters(&OF_EXCHANGES, &ExchangeCounts::of(exchange)).into();
    }
    shown
}

async fn list(ask: Ask) -> Answer {
    ask.app.watch(Watched::Exchanges);
    let mut items = Vec::new();
    for desk in ask.desks().await? {
        items.extend(all(&desk).await?.iter().map(|exchange| shown(&ask.app, desk.vhost(), exchange)));
    }
    paging::list(&ask, items)
}

async fn show(ask: Ask) -> Answer {
    ask.app.watch(Watched::Exchanges);
    let desk = ask.desk().await?;
    let exchange = match meant(ask.named("name")) {
        "" => nameless(&desk).await,
        name => desk.exchange(name).await?,
    };
    let mut item = shown(&ask.app, desk.vhost(), &exchange);
    item["incoming"] = json!([]);
    item["outgoing"] = json!([]);
    paging::one(&ask, item)
}

/// An exchange as a tool declares it.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub(crate) struct ExchangePut {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    #[serde(deserialize_with = "lenient::truth")]
    pub(crate) durable: bool,
    #[serde(deserialize_with = "lenient::truth")]
    pub(crate) auto_delete: bool,
    #[serde(deserialize_with = "lenient::truth")]
    pub(crate) internal: bool,
    #[serde(deserialize_with = "lenient::object")]
    pub(crate) arguments: Map<String, Value>,
}

impl Default for ExchangePut {
    fn default() -> Self {
        let kind = "direct".to_owned();
        Self { kind, durable: true, auto_delete: false, internal: false, arguments: Map::new() }
    }
}

impl ExchangePut {
    /// The same as a client of AMQP declares it.
    pub(crate) fn wanted(&self, name: &str) -> Result<amqp::DeclareExchange, Problem> {
        Ok(amqp::DeclareExchange {
            name: name.to_owned(),
            kind: self.kind.clone(),
            passive: false,
            durable: self.durable,
            auto_delete: self.auto_delete,
            internal: self.internal,
            arguments: tables::table(&self.arguments)?,
        })
    }
}

async fn declare(ask: Ask) -> Answer {
    let (desk, name) = (ask.desk().await?, meant(ask.named("name")));
    let wanted = ask.body::<ExchangePut>()?.wanted(name)?;
    let settings = arguments::exchange(&wanted, desk.vhost())?;
    let is_new = desk.exchange(name).await.is_err();
    match desk.declare_exchange(name, settings).await {
        Ok(()) => put(is_new),
        Err(NotDone::Failed(Failure::Refused(refused))) => match refused.refusal {
            Refusal::ExchangeDiffers(key) => {
                let is = desk.exchange(name).await?;
                Err(differs::exchange(key, &wanted, &is, desk.vhost()).into())
            }
            refusal => Err(amqp::Refused::Declined(refusal).into()),
        },
        Err(denied) => Err(denied.into()),
    }
}

async fn delete(ask: Ask) -> Answer {
    let if_unused = ask.demands("if-unused")?;
    ask.desk().await?.delete_exchange(meant(ask.named("name")), if_unused).await?;
    done()
}
