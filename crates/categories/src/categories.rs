//! What users ask of categories, and what the server sees to when it starts.

use std::fmt;
use std::sync::Arc;

use overtake_access::{Desk, NotDone};
use overtake_engine::{DeleteOnly, Engine, Failure, Refused};
use overtake_lane::{
    Binding, Destination, ExchangeKind, ExchangeSettings, ExchangeView, PriorityLanes, Refusal, Settings,
};
use serde_json::{Map, Value};

use crate::group::{category_of, is_group, queue_of, settings_of};
use crate::view::{CategoryView, GroupView};

/// What the predeclared exchanges are called.
const PREDECLARED: &str = "amq.";

/// All categories of a broker, with the lanes that their groups have.
#[derive(Clone, Debug, Default)]
pub struct Categories {
    lanes: PriorityLanes,
}

/// Why something was not done with a category.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotInCategory {
    /// A category or a group cannot be called so.
    BadName(String),
    /// There is no such category.
    NoSuchCategory,
    /// The category has no such group.
    NoSuchGroup,
    /// It has groups, which would get nothing any more.
    HasGroups,
    /// A setting of a group cannot be: its key, and why.
    BadSetting(String, String),
    /// The user may not, or the engine does not.
    NotDone(NotDone),
}

impl fmt::Display for NotInCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(name) => {
                write!(
                    f,
                    "`{name}` is no name of a category or a group: 1 to 200 bytes of text without `:` and `@`"
                )
            }
            Self::NoSuchCategory => f.write_str("there is no such category"),
            Self::NoSuchGroup => f.write_str("the category has no such group"),
            Self::HasGroups => f.write_str("the category has groups: delete them first"),
            Self::BadSetting(key, why) => write!(f, "`{key}` {why}"),
            Self::NotDone(not) => not.fmt(f),
        }
    }
}

impl std::error::Error for NotInCategory {}

impl From<NotDone> for NotInCategory {
    fn from(not: NotDone) -> Self {
        Self::NotDone(not)
    }
}

type Done<T> = Result<T, NotInCategory>;

impl Categories {
    /// Those of a broker with these lanes.
    #[must_use]
    pub fn new(lanes: PriorityLanes) -> Self {
        Self { lanes }
    }

    /// The lanes of every group.
    #[must_use]
    pub fn lanes(&self) -> &PriorityLanes {
        &self.lanes
    }

    /// Gives every group the lanes of the server, in every virtual host. Messages that wait stand in the new lanes by their age. A group whose
    /// queue refuses them is left as it is, and said in the log.
    ///
    /// # Errors
    /// The engine does not answer.
    pub async fn settle(&self, engine: &dyn Engine) -> Result<(), Failure> {
        for vhost in engine.vhosts().await? {
            let engine = engine.in_vhost(vhost.vhost);
            for exchange in engine.exchanges().await? {
                if !may_be_category(&exchange) {
                    continue;
                }
                for binding in engine.bindings(&exchange.name).await? {
                    if let Some((queue, _)) = group_of(&exchange.name, &binding) {
                        self.settle_group(&*engine, &queue).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn settle_group(&self, engine: &dyn Engine, queue: &str) -> Result<(), Failure> {
        let mut settings = match engine.queue(queue).await {
            Ok(view) => view.settings,
            // It has gone meanwhile.
            Err(Failure::Refused(_)) => return Ok(()),
            Err(unavailable) => return Err(unavailable),
        };
        if settings.order == self.lanes.order() {
            return Ok(());
        }
        settings.order = self.lanes.order();
        match engine.declare_queue(queue, settings).await {
            Ok(_) => tracing::info!(queue, "has the lanes of the configuration"),
            Err(Failure::Refused(Refused { refusal, .. })) => {
                tracing::warn!(queue, "keeps its lanes: {refusal}; {}", refusal.hint());
            }
            Err(unavailable) => return Err(unavailable),
        }
        Ok(())
    }

    // ---- what users ask ----

    /// Makes a category, or finds the one that is there. Configure the exchange.
    ///
    /// # Errors
    /// [`NotInCategory`]; the same holds below.
    pub async fn declare(&self, by: &Desk, category: &str) -> Done<CategoryView> {
        if !PriorityLanes::is_category(category) {
            return Err(NotInCategory::BadName(category.to_owned()));
        }
        by.declare_exchange(category, ExchangeSettings::new(ExchangeKind::Fanout)).await?;
        self.show(by, category).await
    }

    /// Makes a group, with the category where there is none yet, or changes the settings that are given of the one that is there. It gets what is published
    /// from now on. Configure and write the queue, configure and read the exchange. Answers whether it is new.
    pub async fn join(
        &self,
        by: &Desk,
        category: &str,
        group: &str,
        given: Map<String, Value>,
    ) -> Done<(bool, GroupView)> {
        if !is_group(group) {
            return Err(NotInCategory::BadName(group.to_owned()));
        }
        self.declare(by, category).await?;
        let queue = queue_of(category, group);
        let there = missing_is_none(by.queue(&queue).await)?.map(|queue| queue.settings);
        let settings_of = |there: Option<&Settings>| {
            settings_of(&self.lanes, there, given.clone())
                .map_err(|(key, why)| NotInCategory::BadSetting(key, why))
        };
        match &there {
            Some(_) => by.change_queue(&queue, None, |there| settings_of(Some(there))).await?,
            None => drop(by.declare_queue(&queue, settings_of(None)?, None).await?),
        }
        by.bind(Binding::new(category, Destination::Queue(Arc::from(&*queue)), "")).await?;
        let view = by.queue(&queue).await?;
        Ok((there.is_none(), GroupView::of(&self.lanes, category, group, view)))
    }

    /// Deletes a group with all it has yet to do.
    pub async fn leave(&self, by: &Desk, category: &str, group: &str) -> Done<()> {
        self.group(by, category, group).await?;
        by.delete_queue(&queue_of(category, group), DeleteOnly::default()).await?;
        Ok(())
    }

    /// Deletes a category that has no groups.
    pub async fn delete(&self, by: &Desk, category: &str) -> Done<()> {
        if !self.show(by, category).await?.groups.is_empty() {
            return Err(NotInCategory::HasGroups);
        }
        by.delete_exchange(category, true).await?;
        Ok(())
    }

    /// A category with its groups.
    pub async fn show(&self, by: &Desk, category: &str) -> Done<CategoryView> {
        let found = missing_is_none(by.exchange(category).await)?.filter(may_be_category);
        let exchange = found.ok_or(NotInCategory::NoSuchCategory)?;
        self.view(by, exchange).await?.ok_or(NotInCategory::NoSuchCategory)
    }

    /// A group of a category.
    pub async fn group(&self, by: &Desk, category: &str, group: &str) -> Done<GroupView> {
        let groups = self.show(by, category).await?.groups;
        groups.into_iter().find(|one| one.name == group).ok_or(NotInCategory::NoSuchGroup)
    }

    /// The categories that one may see, by name.
    pub async fn list(&self, by: &Desk) -> Done<Vec<CategoryView>> {
        let mut all = Vec::new();
        for exchange in by.exchanges().await?.into_iter().filter(may_be_category) {
            all.extend(self.view(by, exchange).await?);
        }
        Ok(all)
    }

    /// An exchange as a category: it has groups, or nothing at all is bound to it.
    async fn view(&self, by: &Desk, exchange: ExchangeView) -> Done<Option<CategoryView>> {
        let category = exchange.name;
        let Some(bindings) = missing_is_none(by.bindings(&category).await)? else { return Ok(None) };
        let is_bare = bindings.is_empty();
        let mut groups = Vec::new();
        for (queue, group) in bindings.iter().filter_map(|binding| group_of(&category, binding)) {
            match missing_is_none(by.queue(&queue).await) {
                Ok(Some(queue)) => groups.push(GroupView::of(&self.lanes, &category, &group, queue)),
                // Nor is one shown that this user may not see.
                Ok(None) | Err(NotInCategory::NotDone(NotDone::Denied(_))) => {}
                Err(not) => return Err(not),
            }
        }
        groups.sort_by(|a, b| a.name.cmp(&b.name));
        groups.dedup_by(|a, b| a.name == b.name);
        Ok((is_bare || !groups.is_empty()).then_some(CategoryView { name: category, groups }))
    }
}

fn may_be_category(exchange: &ExchangeView) -> bool {
    exchange.settings.kind == ExchangeKind::Fanout
        && PriorityLanes::is_category(&exchange.name)
        && !exchange.name.starts_with(PREDECLARED)
}

/// The queue and the name of the group that a binding of a category leads to.
fn group_of(category: &str, binding: &Binding) -> Option<(Arc<str>, String)> {
    let Destination::Queue(queue) = &binding.to else { return None };
    let (of, group) = category_of(queue)?;
    (of == category).then(|| (Arc::clone(queue), group.to_owned()))
}

/// What is not there is none.
fn missing_is_none<T>(answer: Result<T, NotDone>) -> Result<Option<T>, NotInCategory> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(NotDone::Failed(Failure::Refused(Refused {
            refusal: Refusal::NoSuchQueue | Refusal::NoSuchExchange,
            ..
        }))) => Ok(None),
        Err(not) => Err(not.into()),
    }
}
