//! The OpenAPI document, made from the handlers.

use std::sync::OnceLock;

use overtake_api::problem::{At, ProblemBody};
use utoipa::PartialSchema;
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::Type;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    Content, InfoBuilder, LicenseBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required,
    Response,
};

use crate::login;

/// The document: the same for every router.
pub(crate) fn document() -> &'static OpenApi {
    static DOCUMENT: OnceLock<OpenApi> = OnceLock::new();
    DOCUMENT.get_or_init(|| finished(crate::api().to_openapi()))
}

/// What the handlers do not say themselves.
pub(crate) fn base() -> OpenApi {
    let license = LicenseBuilder::new().name("Apache-2.0").identifier(Some("Apache-2.0")).build();
    let info = InfoBuilder::new()
        .title("Overtake")
        .version("1")
        .description(Some(
            "A durable message broker in which urgent work overtakes bulk work. Every error is a Problem with a `code` \
             for programs and a `hint` for people. A query parameter that an operation does not take is refused; one with an \
             empty value counts as left out, except `if`, `import_priority`, `priority` and `wait_ms`.",
        ))
        .license(Some(license));
    OpenApiBuilder::new().info(info).build()
}

/// Every operation may answer with a problem; said once here instead of at each handler.
fn finished(mut document: OpenApi) -> OpenApi {
    let components = document.components.get_or_insert_default();
    components.schemas.insert("Problem".to_owned(), ProblemBody::schema());
    components.schemas.insert("At".to_owned(), At::schema());
    components.responses.insert("Problem".to_owned(), RefOr::T(problem()));
    components.add_security_scheme("basic", SecurityScheme::Http(Http::new(HttpAuthScheme::Basic)));
    components.add_security_scheme("token", SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    for (path, item) in &mut document.paths.paths {
        let security = if login::is_open(path) { Vec::new() } else { logins() };
        for operation in operations(item) {
            operation.security = Some(security.clone());
            if login::is_placed(path) {
                operation.parameters.get_or_insert_default().push(RefOr::T(vhost()));
            }
        }
    }
    let paths = std::mem::take(&mut document.paths.paths);
    document.paths.paths = paths.into_iter().map(|(path, item)| (path_in_document(&path), item)).collect();
    for operation in document.paths.paths.values_mut().flat_map(operations) {
        let refer = RefOr::Ref(Ref::new("#/components/responses/Problem"));
        operation.responses.responses.insert("default".to_owned(), refer);
    }
    document
}

/// A path that is served as it is written in the document: a rest of a path is written otherwise there.
pub(crate) fn path_in_document(path: &str) -> String {
    path.replace("{*", "{")
}

/// Either of them.
fn logins() -> Vec<SecurityRequirement> {
    ["basic", "token"].map(|name| SecurityRequirement::new(name, [] as [&str; 0])).into()
}

fn vhost() -> Parameter {
    ParameterBuilder::new()
        .name("vhost")
        .parameter_in(ParameterIn::Query)
        .required(Required::False)
        .description(Some("The virtual host, percent-encoded, else `/`"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String)))
        .build()
}

fn problem() -> Response {
    let content = Content::new(Some(RefOr::Ref(Ref::from_schema_name("Problem"))));
    let mut response = Response::new("What is wrong, and what to do");
    response.content.insert("application/problem+json".to_owned(), RefOr::T(content));
    response
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}
