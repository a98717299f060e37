//! Lists: filtered, sorted, cut into pages and columns, as the parameters say.
//!
//! `page` makes it a page: an object with counts around `items`; without it a list is a list. `name` with `use_regex=true`
//! is a regular expression, else a part of the name.

use std::cmp::Ordering;

use axum::http::StatusCode;
use overtake_lane::Pattern;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, seen};
use crate::ask::Ask;
use crate::problem::Problem;

/// Items of a page that does not say how many.
const PAGE_SIZE: usize = 100;
/// Most items of a page.
const PAGE_SIZE_MAX: usize = 500;

/// The list that was asked for.
pub(crate) fn list(ask: &Ask, items: Vec<Value>) -> Answer {
    let total = items.len();
    let mut items = named(ask, items)?;
    if let Some(by) = ask.param("sort") {
        items.sort_by(|one, other| order(at(one, by), at(other, by)));
        if ask.says("sort_reverse") {
            items.reverse();
        }
    }
    let Some(page) = ask.number("page")? else {
        return seen(&columns(ask, items).into());
    };
    let size = ask.number("page_size")?.unwrap_or(PAGE_SIZE);
    if page == 0 || !(1..=PAGE_SIZE_MAX).contains(&size) {
        let reason = format!("page must be 1 or more, and page_size 1 to {PAGE_SIZE_MAX}");
        return Err(Problem::bad(reason));
    }
    let filtered = items.len();
    let pages = filtered.div_ceil(size).max(1);
    if page > pages {
        let reason = format!("Page out of range, page: {page} page size: {size}, len: {filtered}");
        return Err(Problem::new(StatusCode::BAD_REQUEST, "page_out_of_range", reason));
    }
    let items: Vec<Value> = items.into_iter().skip((page - 1) * size).take(size).collect();
    seen(&json!({
        "total_count": total,
        "filtered_count": filtered,
        "item_count": items.len(),
        "page": page,
        "page_size": size,
        "page_count": pages,
        "items": columns(ask, items),
    }))
}

/// One thing, with the columns that were asked for.
pub(crate) fn one(ask: &Ask, item: Value) -> Answer {
    let mut items = columns(ask, vec![item]);
    seen(&items.pop().unwrap_or_default())
}

fn named(ask: &Ask, mut items: Vec<Value>) -> Result<Vec<Value>, Problem> {
    let Some(wanted) = ask.param("name") else { return Ok(items) };
    let name = |item: &Value| item["name"].as_str().unwrap_or_default().to_owned();
    if ask.says("use_regex") {
        let pattern = Pattern::new(wanted)?;
        items.retain(|item| pattern.matches(&name(item)));
    } else {
        let wanted = wanted.to_lowercase();
        items.retain(|item| name(item).to_lowercase().contains(&wanted));
    }
    Ok(items)
}

/// The value under a name with dots.
fn at<'a>(item: &'a Value, name: &str) -> &'a Value {
    name.split('.').fold(item, |value, key| &value[key])
}

fn order(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one.as_f64().partial_cmp(&other.as_f64()).unwrap_or(Ordering::Equal)
        }
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (one, other) => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) | Value::Object(_) => 4,
    }
}

/// Only what `columns` names, where it does.
fn columns(ask: &Ask, items: Vec<Value>) -> Vec<Value> {
    let Some(columns) = ask.param("columns") else { return items };
    let columns: Vec<&str> = columns.split(',').collect();
    let cut = |item: Value| {
        let mut kept = Map::new();
        for column in &columns {
            keep(&mut kept, &item, column);
        }
        Value::Object(kept)
    };
    items.into_iter().map(cut).collect()
}

fn keep(kept: &mut Map<String, Value>, item: &Value, column: &str) {
    let Some((name, rest)) = column.split_once('.') else {
        if let Some(value) = item.get(column) {
            kept.insert(column.to_owned(), value.clone());
        }
        return;
    };
    let Some(inner) = item.get(name) else { return };
    let place = kept.entry(name).or_insert_with(|| json!({}));
    if let Value::Object(place) = place {
        keep(place, inner, rest);
    }
}
