//! Categories of streams, and the groups of consumers that each have a copy.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use overtake_categories::{CategoryView, GroupView, NotInCategory, StreamView};
use overtake_lane::{LaneView, Refusal};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::{Answer, App, done, json};
use crate::decode::Json;
use crate::login::At;
use crate::path::{CategoryName, GroupName};
use crate::problem::Problem;
use crate::schema::{LaneSchema, SettingsSchema};

/// The paths of categories.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list_categories))
        .routes(routes!(declare_category, show_category, delete_category))
        .routes(routes!(join_category, show_group, delete_group))
}

/// Categories, by name.
#[derive(Serialize, ToSchema)]
#[schema(as = Categories)]
struct CategoryList<'a> {
    /// How the lanes of all groups are made.
    lanes: LanesOut<'a>,
    /// Those whose exchange one may see.
    categories: Vec<CategoryOut<'a>>,
}

/// How the lanes of all groups are made: a setting of the server.
#[derive(Serialize, ToSchema)]
#[schema(as = PriorityLanes)]
struct LanesOut<'a> {
    /// Whether what is below the threshold has a lane of its own.
    enabled: bool,
    /// The least priority that is not backfill.
    threshold: i32,
    /// What the backfill lane of `customer` is called behind `customer:`.
    backfill_suffix: &'a str,
}

/// A category. Whoever publishes to the exchange of its name reaches all its groups.
#[derive(Serialize, ToSchema)]
#[schema(as = Category)]
struct CategoryOut<'a> {
    /// Its name, and that of its exchange.
    name: &'a str,
    /// Its groups, by name.
    groups: Vec<GroupOut<'a>>,
}

/// A group of consumers, with a copy of its own of all that is published since it is there.
#[derive(Serialize, ToSchema)]
#[schema(as = Group)]
struct GroupOut<'a> {
    /// Its name.
    group: &'a str,
    /// Its queue, from which it consumes and leases.
    queue: &'a str,
    /// Its streams, the most urgent first.
    streams: Vec<StreamOut<'a>>,
}

/// One lane of a group: how far behind it is.
#[derive(Serialize, ToSchema)]
#[schema(as = Stream)]
struct StreamOut<'a> {
    /// What the lane is called.
    stream: &'a str,
    /// What its dead letters are called.
    dead_letters: &'a str,
    /// What it holds.
    #[serde(flatten)]
    #[schema(inline, value_type = LaneSchema)]
    lane: &'a LaneView,
}

impl<'a> CategoryOut<'a> {
    fn of(view: &'a CategoryView) -> Self {
        Self { name: &view.name, groups: view.groups.iter().map(GroupOut::of).collect() }
    }
}

impl<'a> GroupOut<'a> {
    fn of(view: &'a GroupView) -> Self {
        let stream = |StreamView { stream, dead_letters, lane }: &'a StreamView| StreamOut {
            stream,
            dead_letters,
            lane,
        };
        Self {
            group: &view.name,
            queue: &view.queue.name,
            streams: view.streams.iter().map(stream).collect(),
        }
    }
}

impl From<NotInCategory> for Problem {
    fn from(not: NotInCategory) -> Self {
        let told = not.to_string();
        match not {
            NotInCategory::BadName(_) => Self::from(Refusal::NameInvalid).detail(told),
            NotInCategory::NoSuchCategory => Self::new(
                StatusCode::NOT_FOUND,
                "no-such-category",
                "there is no such category",
                "list the categories, and say in which virtual host it is; PUT makes one",
            ),
            NotInCategory::NoSuchGroup => Self::new(
                StatusCode::NOT_FOUND,
                "no-such-group",
                "the category has no such group",
                "show the category: it lists its groups; PUT makes one",
            ),
            NotInCategory::HasGroups => Self::new(
                StatusCode::CONFLICT,
                "category-has-groups",
                "the category has groups",
                "delete its groups first, with what they have yet to do",
            ),
            NotInCategory::BadSetting(key, why) => {
                let detail = if key.is_empty() { why } else { format!("`{key}` {why}") };
                Self::bad_value(key, detail)
            }
            NotInCategory::NotDone(not) => not.into(),
        }
    }
}

/// The categories of a virtual host: exchanges of the kind `fanout` with groups, or with nothing bound to them yet.
#[utoipa::path(get, path = "/v1/categories", tag = "categories", responses((status = 200, description = "By name", body = CategoryList)))]
async fn list_categories(State(app): State<Arc<App>>, At(desk): At) -> Answer {
    let categories = &app.services.categories;
    let all = categories.list(&desk).await?;
    let lanes = categories.lanes();
    let lanes = LanesOut {
        enabled: lanes.is_enabled(),
        threshold: lanes.threshold(),
        backfill_suffix: lanes.suffix(),
    };
    json(StatusCode::OK, &CategoryList { lanes, categories: all.iter().map(CategoryOut::of).collect() })
}

/// Makes a category, or finds the one that is there. What is published while it has no group goes nowhere.
#[utoipa::path(
    put, path = "/v1/categories/{category}", tag = "categories",
    params(("category" = String, Path, description = "Name, percent-encoded, without `:` and `@`")),
    responses((status = 200, description = "It is there", body = CategoryOut))
)]
async fn declare_category(
    State(app): State<Arc<App>>,
    At(desk): At,
    CategoryName(category): CategoryName,
) -> Answer {
    json(StatusCode::OK, &CategoryOut::of(&app.services.categories.declare(&desk, &category).await?))
}

/// One category.
#[utoipa::path(
    get, path = "/v1/categories/{category}", tag = "categories",
    params(("category" = String, Path, description = "Name, percent-encoded")),
    responses((status = 200, description = "The category", body = CategoryOut))
)]
async fn show_category(
    State(app): State<Arc<App>>,
    At(desk): At,
    CategoryName(category): CategoryName,
) -> Answer {
    json(StatusCode::OK, &CategoryOut::of(&app.services.categories.show(&desk, &category).await?))
}

/// Deletes a category that has no groups.
#[utoipa::path(
    delete, path = "/v1/categories/{category}", tag = "categories",
    params(("category" = String, Path, description = "Name, percent-encoded")),
    responses((status = 204, description = "Gone"))
)]
async fn delete_category(
    State(app): State<Arc<App>>,
    At(desk): At,
    CategoryName(category): CategoryName,
) -> Answer {
    app.services.categories.delete(&desk, &category).await?;
    done()
}

/// Makes a group, with the category where there is none yet, or changes those of its settings that are given.
///
/// It gets what is published from now on. The body has settings of a queue but `scheme` and `order`, which the server says for all groups. A new one
/// has a `delivery_limit` of 3 and waits 1 s, 2 s, … at most 1 min between attempts.
#[utoipa::path(
    put, path = "/v1/categories/{category}/groups/{group}", tag = "categories",
    params(
        ("category" = String, Path, description = "Name, percent-encoded, without `:` and `@`"),
        ("group" = String, Path, description = "Name, percent-encoded, without `@`"),
    ),
    request_body = SettingsSchema,
    responses(
        (status = 201, description = "Made", body = GroupOut),
        (status = 200, description = "It was there", body = GroupOut),
    )
)]
async fn join_category(
    State(app): State<Arc<App>>,
    At(desk): At,
    CategoryName(category): CategoryName,
    GroupName(group): GroupName,
    Json(settings): Json<Map<String, Value>>,
) -> Answer {
    let (is_new, view) = app.services.categories.join(&desk, &category, &group, settings).await?;
    json(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &GroupOut::of(&view))
}

/// One group of a category.
#[utoipa::path(
    get, path = "/v1/categories/{category}/groups/{group}", tag = "categories",
    params(
        ("category" = String, Path, description = "Name, percent-encoded"),
        ("group" = String, Path, description = "Name, percent-encoded"),
    ),
    responses((status = 200, description = "The group", body = GroupOut))
)]
async fn show_group(
    State(app): State<Arc<App>>,
    At(desk): At,
    CategoryName(category): CategoryName,
    GroupName(group): GroupName,
) -> Answer {
    json(StatusCode::OK, &GroupOut::of(&app.services.categories.group(&desk, &category, &group).await?))
}

/// Deletes a group with all it has yet to do.
#[utoipa::path(
    delete, path = "/v1/categories/{category}/groups/{group}", tag = "categories",
    params(
        ("category" = String, Path, description = "Name, percent-encoded"),
        ("group" = String, Path, description = "Name, percent-encoded"),
    ),
    responses((status = 204, description = "Gone"))
)]
async fn delete_group(
    State(app): State<Arc<App>>,
    At(desk): At,
    CategoryName(category): CategoryName,
    GroupName(group): GroupName,
) -> Answer {
    app.services.categories.leave(&desk, &category, &group).await?;
    done()
}
