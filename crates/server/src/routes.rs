//! Routes from a file, which is looked at every second: whoever changes the file changes the routes.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use overtake_engine::{Engine, Failure, RouteSet, leads_nowhere};
use overtake_routes::{MANIFEST_LEN_MAX, Reading, diff};
use tokio::sync::Notify;

use crate::ServeError;
use crate::config::Config;

/// How often the file is looked at.
const LOOKS_EVERY: Duration = Duration::from_secs(1);

/// The file of the routes of the virtual host `/`.
pub(crate) struct RoutesFile {
    path: PathBuf,
    engine: Arc<dyn Engine>,
    /// The file as it was when the routes were set by it.
    seen: Option<Stamp>,
}

/// A file that is the same has the same; one that was put in its place has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    len: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            len: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl RoutesFile {
    /// Sets the routes of the file that the configuration names, if it names one.
    pub(crate) async fn open(config: &Config, engine: Arc<dyn Engine>) -> Result<Option<Self>, ServeError> {
        let path = config.routes.file.value.clone();
        if path.as_os_str().is_empty() {
            return Ok(None);
        }
        let mut file = Self { path, engine, seen: None };
        file.look().await.map_err(|why| ServeError::Routes { path: file.path.clone(), why })?;
        Ok(Some(file))
    }

    /// Looks at the file every second, and when it is asked to. What is wrong with it is told once, and changes nothing.
    pub(crate) async fn watch(mut self, asked: Arc<Notify>) {
        let mut looks = tokio::time::interval(LOOKS_EVERY);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut told = String::new();
        loop {
            tokio::select! {
                _ = looks.tick() => {}
                () = asked.notified() => self.seen = None,
            }
            let why = self.look().await.err().unwrap_or_default();
            if !why.is_empty() && told != why {
                tracing::error!("{}: {why}\nthe routes stay as they are", self.path.display());
            }
            told = why;
        }
    }

    /// Sets what the file says, if it is another one than before.
    async fn look(&mut self) -> Result<(), String> {
        let stamp = Stamp::of(&std::fs::metadata(&self.path).map_err(|error| error.to_string())?);
        if self.seen == Some(stamp) {
            return Ok(());
        }
        // Until it holds it is looked at again: the engine may take it then, or a queue be there.
        self.seen = None;
        let Reading { manifest, notes } = read(&self.path, stamp.len)?;
        let fail = |failure: Failure| failure.to_string();
        if let Some(route) = leads_nowhere(&*self.engine, &manifest).await.map_err(fail)? {
            let queue = route.route.sink.name();
            return Err(format!(
                "routes.{}: there is no queue `{queue}`; declare it, or write Endpoint(\"{queue}\")",
                route.name
            ));
        }
        let before = self.engine.routes().await.map_err(fail)?;
        let changes = diff(before.set.manifest(), &manifest);
        if !changes.is_empty() {
            self.engine.set_routes(Arc::new(RouteSet::new(manifest))).await.map_err(fail)?;
        }
        for change in &changes {
            tracing::info!("{}: {change}", self.path.display());
        }
        for note in &notes {
            tracing::warn!("{}: {note}", self.path.display());
        }
        self.seen = Some(stamp);
        Ok(())
    }
}

fn read(path: &Path, len: u64) -> Result<Reading, String> {
    if len > MANIFEST_LEN_MAX as u64 {
        return Err(format!("it has {len} bytes, {MANIFEST_LEN_MAX} are the most"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    Reading::from_file(Some(path), &text).map_err(|error| format!("{}\n{error}", error.summary()))
}
