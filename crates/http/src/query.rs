//! Query parameters that an operation does not take are refused: `purge?status=dead` must not purge what is ready, nor `messages?staus=dead`
//! show everything. Which parameters an operation takes is what the OpenAPI document says.

use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use overtake_api::params::Params;
use overtake_routes::nearest::did_you_mean;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation, ParameterIn};

use crate::openapi;
use crate::problem::Problem;

/// Only paths under these refuse unknown parameters: load balancers and Prometheus may add parameters of their own to the others.
const STRICT: [&str; 2] = ["/v1/", "/api/v1/"];

/// Refuses a request with a parameter that its operation does not take.
pub(crate) async fn known(request: Request, next: Next) -> Response {
    match refuse(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn refuse(request: &Request) -> Result<(), Problem> {
    let query = request.uri().query().filter(|query| !query.is_empty());
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let (Some(query), Some(path)) = (query, path) else { return Ok(()) };
    let Some(operation) = operation(path, request.method()) else { return Ok(()) };
    let takes: Vec<&str> = parameters(operation).collect();
    match Params::parse(query)?.names().find(|name| !takes.iter().any(|taken| takes_name(taken, name))) {
        None => Ok(()),
        Some(name) => Err(Problem::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "parameter-unknown",
            "the request has a query parameter it does not know",
            "",
        )
        .key(name)
        .detail(format!("this request takes no query parameter `{name}`"))
        .hint(hint(name, &takes, operation.request_body.is_some()))),
    }
}

fn hint(name: &str, takes: &[&str], has_body: bool) -> String {
    match did_you_mean(name, takes.iter().copied()) {
        Some(near) => near,
        None if !takes.is_empty() => format!("the query parameters here are {}", takes.join(", ")),
        None if has_body => "put it into the body: this request takes no query parameters".to_owned(),
        None => "leave it out: this request takes no query parameters".to_owned(),
    }
}

fn operation(path: &str, method: &Method) -> Option<&'static Operation> {
    if !STRICT.iter().any(|strict| path.starts_with(strict)) {
        return None;
    }
    let item = openapi::document().paths.paths.get(&openapi::path_in_document(path))?;
    let operation = match *method {
        Method::GET | Method::HEAD => &item.get,
        Method::PUT => &item.put,
        Method::POST => &item.post,
        Method::DELETE => &item.delete,
        Method::PATCH => &item.patch,
        _ => return None,
    };
    operation.as_ref()
}

fn parameters(operation: &'static Operation) -> impl Iterator<Item = &'static str> {
    let all = operation.parameters.iter().flatten();
    all.filter_map(|parameter| match parameter {
        RefOr::T(parameter) if matches!(parameter.parameter_in, ParameterIn::Query) => Some(&*parameter.name),
        _ => None,
    })
}

/// Whether `taken` is this parameter. `header.NAME` stands for one of each name.
fn takes_name(taken: &str, name: &str) -> bool {
    taken == name || taken.strip_suffix("NAME").is_some_and(|prefix| name.starts_with(prefix))
}
