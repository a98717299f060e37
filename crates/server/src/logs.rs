//! Log lines, on stderr.

use std::io::IsTerminal;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, util::SubscriberInitExt};

use crate::config::{Log, LogFilter, LogFormat};

/// Starts logging for the whole process, as the configuration says.
pub(crate) fn start(log: &Log) {
    start_logs(&log.level.value, log.format.value);
}

/// Starts logging for the whole process, on stderr. When something logs already, that stays as it is.
pub fn start_logs(level: &LogFilter, format: LogFormat) {
    let filter: Targets = level.as_str().parse().unwrap_or_default();
    // The journal stamps every line itself.
    let timed = std::env::var_os("JOURNAL_STREAM").is_none();
    let coloured =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let layer = layer(format, timed, coloured, std::io::stderr);
    // Fails only when something logs already.
    let _ = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init();
}

/// Writes lines as they are configured.
fn layer<S, W>(format: LogFormat, timed: bool, coloured: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = fmt::layer().with_writer(writer).with_ansi(coloured);
    match (format, timed) {
        (LogFormat::Text, true) => lines.boxed(),
        (LogFormat::Text, false) => lines.without_time().boxed(),
        (LogFormat::Json, true) => lines.json().flatten_event(true).boxed(),
        (LogFormat::Json, false) => lines.json().flatten_event(true).without_time().boxed(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("no panic").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn line(format: LogFormat, timed: bool) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber =
            tracing_subscriber::registry().with(layer(format, timed, false, move || writer.clone()));
        tracing::subscriber::with_default(subscriber, || tracing::info!(target: "server", port = 7, "ready"));
        let bytes = lines.0.lock().expect("no panic").clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn the_journal_stamps_lines_itself() {
        assert_eq!(line(LogFormat::Text, false), " INFO server: ready port=7\n");
        assert!(line(LogFormat::Text, true).contains("Z  INFO server: ready port=7\n"));
    }

    #[test]
    fn a_machine_gets_an_object_per_line() {
        let json: serde_json::Value = serde_json::from_str(&line(LogFormat::Json, true)).expect("JSON");
        assert_eq!(json["message"], "ready");
        assert_eq!(json["port"], 7);
        assert!(json["timestamp"].is_string());
    }
}
