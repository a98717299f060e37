//! Every route with the tag that it takes, in one list: a route is served because it stands there, and judged because its tag
//! stands beside it.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use overtake_access::{Identity, Tag};

use crate::app::App;
use crate::problem::Problem;

/// A route as it is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Its method.
    pub method: Method,
    /// Its path, with names in braces.
    pub path: &'static str,
    /// The tag that it takes; rights are asked besides.
    pub tag: Tag,
}

/// Routes, while they are put together.
#[derive(Default)]
pub(crate) struct Routes {
    router: Router<Arc<App>>,
    all: Vec<Route>,
}

impl Routes {
    pub(crate) fn get<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        tag: Tag,
        path: &'static str,
        to: H,
    ) -> Self {
        self.on(Method::GET, tag, path, on(MethodFilter::GET, to))
    }

    pub(crate) fn put<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        tag: Tag,
        path: &'static str,
        to: H,
    ) -> Self {
        self.on(Method::PUT, tag, path, on(MethodFilter::PUT, to))
    }

    pub(crate) fn post<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        tag: Tag,
        path: &'static str,
        to: H,
    ) -> Self {
        self.on(Method::POST, tag, path, on(MethodFilter::POST, to))
    }

    pub(crate) fn delete<H: Handler<T, Arc<App>>, T: 'static>(
        self,
        tag: Tag,
        path: &'static str,
        to: H,
    ) -> Self {
        self.on(Method::DELETE, tag, path, on(MethodFilter::DELETE, to))
    }

    fn on(mut self, method: Method, tag: Tag, path: &'static str, to: MethodRouter<Arc<App>>) -> Self {
        let judged = to.layer(middleware::from_fn(move |request, next| judge(tag, request, next)));
        self.all.push(Route { method, path, tag });
        Self { router: self.router.route(path, judged), all: self.all }
    }

    /// What serves them, and what they are.
    pub(crate) fn split(self) -> (Router<Arc<App>>, Vec<Route>) {
        (self.router, self.all)
    }
}

/// Whoever asks must have the tag.
async fn judge(tag: Tag, request: Request, next: Next) -> Response {
    let who = request.extensions().get::<Identity>().ok_or_else(Problem::unknown_user);
    match who.and_then(|who| who.must_have(tag).map_err(Problem::from)) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}
