//! What a snapshot says of itself, in a file that comes last: without it a snapshot is not whole.

use serde::{Deserialize, Serialize};

use super::error::SnapshotError;
use super::files::SnapshotFiles;
use crate::file::{FORMAT_VERSION, Name};

/// The name of the file.
pub const MANIFEST_NAME: &str = "snapshot.json";
/// What this program writes and reads.
const VERSION: u32 = 1;

/// What a snapshot says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of this description.
    pub snapshot: u32,
    /// The store's id, 16 hexadecimal digits.
    pub store: String,
    /// The format of the files.
    pub format: u32,
    /// The LSN at which the journal ends.
    pub lsn: u64,
    /// Every file but this one.
    pub files: Vec<ManifestFile>,
}

/// What a snapshot says of one of its files.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The CRC-32C of all of it.
    pub crc32c: u32,
}

impl Manifest {
    /// Of these files, none of which is told of yet.
    #[must_use]
    pub fn new(files: &SnapshotFiles) -> Self {
        Self {
            snapshot: VERSION,
            store: format!("{:016x}", files.store_id),
            format: FORMAT_VERSION,
            lsn: files.lsn.0,
            files: Vec::with_capacity(files.files.len()),
        }
    }

    /// As it stands in its file.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self).expect("names and numbers can be written as JSON");
        json.push(b'\n');
        json
    }

    /// Reads it. Names in it are names of journal files and segments, each but once.
    ///
    /// # Errors
    /// [`SnapshotError::BadManifest`]; [`SnapshotError::BadName`].
    pub fn parse(json: &[u8]) -> Result<Self, SnapshotError> {
        let bad = |why: String| SnapshotError::BadManifest { why };
        let manifest: Self = serde_json::from_slice(json).map_err(|error| bad(error.to_string()))?;
        if manifest.snapshot != VERSION {
            return Err(bad(format!("its version is {}, this program knows {VERSION}", manifest.snapshot)));
        }
        for file in &manifest.files {
            name_of(&file.name)?;
        }
        let mut names: Vec<_> = manifest.files.iter().map(|file| file.name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(bad(format!("{} is there twice", pair[0]))),
            None if names.is_empty() => Err(bad("there is no file in it".to_owned())),
            None => Ok(manifest),
        }
    }

    /// Bytes in all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }
}

/// The name of a file of a snapshot, which is nothing else: no path, and nothing that is not part of one.
pub(super) fn name_of(text: &str) -> Result<Name, SnapshotError> {
    match Name::parse(text) {
        Some(name @ (Name::Journal(_) | Name::Segment(_))) => Ok(name),
        _ => Err(SnapshotError::BadName { name: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(names: &[&str]) -> Manifest {
        let file = |name: &&str| ManifestFile { name: (*name).to_owned(), bytes: 5, crc32c: u32::MAX };
        Manifest {
            snapshot: 1,
            store: "00000000000000ff".to_owned(),
            format: 1,
            lsn: u64::MAX,
            files: names.iter().map(file).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let written = manifest(&["journal-000000000001", "segment-000000000001"]);
        assert_eq!(Manifest::parse(&written.to_json()).expect("it is right"), written);
        assert_eq!(written.bytes(), 10);
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in
            ["../journal-000000000001", "/etc/passwd", "LOCK", "ids-000000000001", "new-000000000001", ""]
        {
            let error = Manifest::parse(&manifest(&[name]).to_json()).expect_err(name);
            assert!(matches!(error, SnapshotError::BadName { .. }), "{name}: {error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let newer = Manifest { snapshot: 2, ..manifest(&["journal-000000000001"]) };
        let twice = manifest(&["journal-000000000001", "journal-000000000001"]);
        for json in [newer.to_json(), twice.to_json(), manifest(&[]).to_json(), b"{}".to_vec(), Vec::new()] {
            let error = Manifest::parse(&json).expect_err("refused");
            assert!(matches!(error, SnapshotError::BadManifest { .. }), "{error}");
        }
    }
}
