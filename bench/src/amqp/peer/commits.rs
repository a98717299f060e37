//! How much our broker committed, as its metrics say.

use anyhow::{Context, Result};

use super::Broker;

/// Since it was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Commits {
    count: u64,
    bytes: u64,
}

impl Commits {
    fn parse(metrics: &str) -> Option<Self> {
        let value = |name: &str| -> Option<u64> {
            metrics.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
        };
        let (count, bytes) = ("overtake_journal_syncs_total ", "overtake_journal_written_bytes_total ");
        Some(Self { count: value(count)?, bytes: value(bytes)? })
    }

    /// Bytes of each commit since then, on average; `None` when there was none.
    pub(crate) fn mean_bytes(self, before: Self) -> Option<usize> {
        (self.bytes - before.bytes).checked_div(self.count - before.count).map(|bytes| bytes as usize)
    }
}

impl Broker {
    /// `None` of a broker that does not say.
    pub(crate) fn commits(&self) -> Result<Option<Commits>> {
        let Some(mut http) = self.http()? else { return Ok(None) };
        let metrics = http.get("/metrics")?;
        Commits::parse(&metrics).context("commits are missing in its metrics").map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_found_in_metrics_and_have_a_mean() {
        let text =
            "# TYPE a counter\novertake_journal_written_bytes_total 4008\novertake_journal_syncs_total 2\n";
        let commits = Commits::parse(text).expect("both are there");
        assert_eq!(commits, Commits { count: 2, bytes: 4008 });
        assert_eq!(Commits { count: 5, bytes: 7008 }.mean_bytes(commits), Some(1_000));
        assert_eq!(commits.mean_bytes(commits), None);
        assert_eq!(Commits::parse("other 1\n"), None);
    }
}
