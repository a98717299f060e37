//! The requests of this interface, counted.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use axum::http::Method;
use overtake_telemetry::{Collected, Family, Kind, Source, Value, labels};

/// Requests answered, by route, method and status. As many series as the interface has, whatever is asked.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<HashMap<Box<str>, Counts>>);

/// By method and status.
type Counts = BTreeMap<(&'static str, u16), u64>;

impl Requests {
    /// One more.
    pub(crate) fn count(&self, route: &str, method: &Method, status: u16) {
        let mut routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (method_label(method), status);
        match routes.get_mut(route) {
            Some(counts) => *counts.entry(key).or_default() += 1,
            None => {
                routes.insert(route.into(), BTreeMap::from([(key, 1)]));
            }
        }
    }

    fn by_route(&self) -> BTreeMap<Box<str>, Counts> {
        let routes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        routes.iter().map(|(route, counts)| (route.clone(), counts.clone())).collect()
    }
}

/// Anybody can invent methods, and each would be a series.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

impl Source for Requests {
    fn collect(&self) -> Collected<'_> {
        let mut family = Family::new(
            "overtake.http.requests",
            Kind::Counter,
            "{request}",
            "Requests answered, by route, method and status.",
        );
        for (route, counts) in self.by_route() {
            for ((method, status), count) in counts {
                let of = labels([("route", &*route), ("method", method), ("status", &status.to_string())]);
                family = family.with(of, Value::Whole(count));
            }
        }
        Box::pin(async { vec![family] })
    }
}
