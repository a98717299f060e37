//! Nothing of ours: the tests are the release's own.
