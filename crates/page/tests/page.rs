//! The files of the page as a browser gets them, and what may stand in them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use axum::body::Body;
use axum::http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use tower::ServiceExt;

fn assets() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("assets")
}

/// Every file of the page, by its path below `assets`.
fn files() -> BTreeSet<String> {
    fn walk(dir: &Path, prefix: &str, all: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let entry = entry.expect("an entry");
            let name = format!("{prefix}{}", entry.file_name().into_string().expect("a name"));
            if entry.path().is_dir() {
                walk(&entry.path(), &format!("{name}/"), all);
            } else {
                all.insert(name);
            }
        }
    }
    let mut all = BTreeSet::new();
    walk(&assets(), "", &mut all);
    all
}

fn read(file: &str) -> String {
    std::fs::read_to_string(assets().join(file)).expect("a text")
}

async fn get(path: &str, known: Option<&str>) -> Response<Body> {
    let mut request = Request::get(path);
    if let Some(tag) = known {
        request = request.header(header::IF_NONE_MATCH, tag);
    }
    let request = request.body(Body::empty()).expect("a request");
    overtake_page::router::<()>().oneshot(request).await.expect("a router does not fail")
}

#[tokio::test]
async fn the_page_lets_a_browser_load_its_own_files_only() {
    let response = get("/", None).await;
    assert_eq!(response.status(), StatusCode::OK);
    let headers = response.headers();
    assert_eq!(headers[header::CONTENT_TYPE], "text/html; charset=utf-8");
    assert_eq!(headers[header::X_FRAME_OPTIONS], "DENY");
    let policy = headers[header::CONTENT_SECURITY_POLICY].to_str().expect("text");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(String::from_utf8_lossy(&body), read("index.html"));
}

#[tokio::test]
async fn every_file_is_served_and_told_unchanged_by_its_tag() {
    for file in files() {
        let path = format!("/assets/{file}");
        let response = get(&path, None).await;
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        let tag = response.headers()[header::ETAG].to_str().expect("text").to_owned();
        assert!(!response.headers()[header::CONTENT_TYPE].is_empty(), "{path}");
        let again = get(&path, Some(&format!("\"other\", {tag}"))).await;
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{path}");
        assert_eq!(get(&path, Some("\"other\"")).await.status(), StatusCode::OK, "{path}");
    }
    for path in ["/assets/none.js", "/assets/../Cargo.toml", "/assets/%2e%2e/Cargo.toml", "/assets/js"] {
        assert_eq!(get(path, None).await.status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn whatever_a_module_imports_is_there() {
    let all = files();
    for file in all.iter().filter(|file| file.starts_with("js/")) {
        for line in read(file).lines() {
            let Some((_, path)) = line.split_once("from '").or_else(|| line.split_once("import('")) else {
                continue;
            };
            let path = path.split('\'').next().unwrap_or_default();
            let target = match path.strip_prefix("../") {
                Some(path) => path.to_owned(),
                None => format!("js/{}", path.strip_prefix("./").expect("a relative path")),
            };
            assert!(all.contains(&target), "{file} imports {path}");
        }
    }
}

#[test]
fn nothing_comes_from_elsewhere() {
    let own = files().into_iter().filter(|file| !file.starts_with("vendor/"));
    for file in own {
        // A namespace, and the name that RFC 2606 keeps for examples: text, never fetched.
        let text = read(&file).replace("http://www.w3.org/2000/svg", "").replace("'https://example.org/", "");
        assert!(!text.contains("//cdn") && !text.contains("http://") && !text.contains("https://"), "{file}");
    }
    // A policy without `unsafe-inline` would keep the browser from taking it.
    let index = read("index.html");
    assert!(!index.contains("<style") && !index.contains("style=") && !index.contains("onclick"));
}

#[test]
fn what_others_wrote_is_what_the_manifest_says() {
    let manifest = read("vendor/MANIFEST");
    let mut named = BTreeSet::from(["MANIFEST".to_owned()]);
    for line in manifest.lines().filter(|line| !line.starts_with('#')) {
        let [file, package, _version, _licence, sum] =
            line.split(' ').collect::<Vec<_>>().try_into().expect("five words");
        let bytes = std::fs::read(assets().join("vendor").join(file)).expect("a file");
        let hex: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, sum, "{file} of {package}");
        named.insert(file.to_owned());
    }
    let there = files();
    let vendored = there.iter().filter_map(|file| file.strip_prefix("vendor/"));
    for file in vendored.filter(|file| !file.starts_with("LICENSE.")) {
        assert!(named.contains(file), "{file} is not in the manifest");
    }
}
