//! URLs as they may be shown.

use url::Url;

/// Shown in the place of a secret.
pub const MASK: &str = "***";

/// A URL as it may be shown: the password, the query and the fragment are masked, since each may be a secret. The path is shown.
///
/// A text that does not parse as a URL with a host may hold a password with `/`, `?`, `#` or `@` in it. Everything between its first `:` after `//` and its last `@` is masked.
#[must_use]
pub fn masked(url: &str) -> String {
    match Url::parse(url) {
        Ok(parsed) if parsed.has_host() && parsed.host_str() != Some("") => match parsed.password() {
            None => without_query(url),
            Some(_) => without_password(url).unwrap_or_else(|| cautious(url)),
        },
        _ => cautious(url),
    }
}

/// Masks what stands between the user and the last `@` before the path.
fn without_password(url: &str) -> Option<String> {
    let start = after_scheme(url);
    let end = url[start..].find(['/', '\\', '?', '#']).map_or(url.len(), |at| start + at);
    let (userinfo, _) = url[start..end].rsplit_once('@')?;
    let (user, _) = userinfo.split_once(':')?;
    let rest = &url[start + userinfo.len()..];
    Some(format!("{}{user}:{MASK}{}", &url[..start], without_query(rest)))
}

fn cautious(url: &str) -> String {
    let start = after_scheme(url);
    let colon = url[start..].find(':').map(|at| start + at);
    match (colon, url.rfind('@')) {
        (Some(colon), Some(at)) if colon < at => {
            format!("{}:{MASK}{}", without_query(&url[..colon]), without_query(&url[at..]))
        }
        _ => without_query(url),
    }
}

fn after_scheme(url: &str) -> usize {
    url.find("://").map_or(0, |at| at + "://".len())
}

fn without_query(url: &str) -> String {
    match url.find(['?', '#']) {
        Some(at) if at + 1 < url.len() => format!("{}{MASK}", &url[..=at]),
        Some(at) => url[..at].to_owned(),
        None => url.to_owned(),
    }
}
