//! The suite on the local engine: on a directory, with tiny journal files, and on a disk whose power fails.

mod support;

/// A real directory.
mod on_a_directory {
    use crate::support::Directory;

    async fn fixture() -> Directory {
        Directory::open(1 << 20)
    }

    overtake_engine::conformance_tests!(fixture);
}

/// A real directory with files so small that they are sealed, given back and used again all the time.
mod on_tiny_files {
    use crate::support::Directory;

    async fn fixture() -> Directory {
        Directory::open(64 << 10)
    }

    overtake_engine::conformance_tests!(fixture);
}

/// A disk in memory that loses, at each crash, what was not synced.
mod through_power_cuts {
    use crate::support::PowerCuts;

    async fn fixture() -> PowerCuts {
        PowerCuts::open(1)
    }

    overtake_engine::conformance_tests!(fixture);
}
