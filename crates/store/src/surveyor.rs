//! The walk of the first pass.
//!
//! Files are walked in the order of their numbers. At the first place that holds no frame the rest of the log is searched
//! for commits, once; what they state about durability is the *proof* the decision table asks for.

use std::collections::BTreeMap;

use crate::catalog::Catalog;
use crate::decide::{Decision, Proof, Sight, decide};
use crate::disk::Disk;
use crate::error::StoreError;
use crate::file::{FileHeader, HEADER_LEN, Name};
use crate::frame::{COMMIT_LEN, Commit, FOOT_LEN};
use crate::lsn::Lsn;
use crate::proof::{Proofs, open};
use crate::survey::{Damage, End, Survey};
use crate::walk::{Step, Walk};

pub(crate) struct Surveyor<'a, D: Disk> {
    disk: &'a D,
    catalog: &'a Catalog,
    proofs: Proofs<'a, D>,
    last: Option<LastCommit>,
    /// Something was skipped since the last commit, so the next one need not follow it.
    is_broken: bool,
    oldest: u64,
    findings: Vec<(u64, Decision, Damage)>,
    /// Per file: records, and bytes of payload.
    counts: BTreeMap<u64, (u64, u64)>,
}

#[derive(Clone, Copy)]
struct LastCommit {
    file: u64,
    at: u64,
    commit: Commit,
    crc: u32,
}

/// How the walk of one file ended.
enum FileEnd {
    /// The next file continues the log.
    Continues,
    /// The log ends at this offset.
    Ends(u64, Sight),
}

impl<'a, D: Disk> Surveyor<'a, D> {
    pub(crate) fn new(disk: &'a D, catalog: &'a Catalog) -> Self {
        Self {
            disk,
            catalog,
            proofs: Proofs::new(disk, catalog),
            last: None,
            is_broken: false,
            oldest: 0,
            findings: Vec::new(),
            counts: BTreeMap::new(),
        }
    }

    /// Walks file after file until the log ends.
    pub(crate) fn walk_files(&mut self, fresh: FileHeader) -> Result<End, StoreError> {
        let mut expected = self.first_header(fresh)?;
        let numbers: Vec<u64> = self.catalog.journals.keys().copied().collect();
        for number in numbers {
            if number > expected.number {
                if self.judge_gap(&expected, number)? {
                    return Ok(End {
                        file: expected,
                        at: HEADER_LEN,
                        is_fresh: true,
                        sight: Some(Sight::FileMissing),
                    });
                }
                expected = self.header_after_gap(&expected, number);
            }
            match self.usable(&expected) {
                Err(sight) => {
                    self.find(number, 0, expected.segment_bytes, sight, Proof::Proven);
                    self.is_broken = true;
                    expected = expected.next(expected.life, expected.segment_bytes);
                }
                Ok(header) => match self.walk_file(header)? {
                    FileEnd::Continues => expected = header.next(header.life, header.segment_bytes),
                    FileEnd::Ends(at, sight) => return Ok(self.end_in(header, at, sight)),
                },
            }
        }
        Ok(End { file: expected, at: HEADER_LEN, is_fresh: true, sight: None })
    }

    /// What the first file's header is, or would be if it could be read.
    fn first_header(&self, fresh: FileHeader) -> Result<FileHeader, StoreError> {
        let Some((&lowest, _)) = self.catalog.journals.first_key_value() else { return Ok(fresh) };
        let mut usable = self.catalog.journals.keys().filter_map(|&number| self.catalog.header(number).ok());
        let Some(known) = usable.next() else {
            // Without one header there is no telling at which LSN to go on.
            let what = self.catalog.header(lowest).err().unwrap_or(Sight::HeaderBad);
            return Err(StoreError::Corrupt { file: Name::Journal(lowest).to_string(), at: 0, what });
        };
        // LSNs of what cannot be read do not matter; the first readable file sets them right.
        Ok(FileHeader { number: lowest, ..known })
    }

    /// The header of an existing file, if it is the one that belongs here.
    fn usable(&self, expected: &FileHeader) -> Result<FileHeader, Sight> {
        let header = self.catalog.header(expected.number)?;
        let is_placed = if self.is_broken {
            header.first_lsn >= expected.first_lsn
        } else {
            header.first_lsn == expected.first_lsn
        };
        // Nothing says where the first readable file should begin.
        if is_placed || self.counts.is_empty() { Ok(header) } else { Err(Sight::HeaderMisplaced) }
    }

    /// Files are missing before `number`; returns whether the log simply ends there.
    fn judge_gap(&mut self, expected: &FileHeader, number: u64) -> Result<bool, StoreError> {
        let proof = self.proofs.beyond(expected.first_lsn, number, HEADER_LEN)?;
        let is_end = decide(Sight::FileMissing, proof) == Decision::End;
        if !is_end {
            self.find(expected.number, 0, 0, Sight::FileMissing, proof);
            self.is_broken = true;
        }
        Ok(is_end)
    }

    fn header_after_gap(&self, expected: &FileHeader, number: u64) -> FileHeader {
        self.catalog.header(number).unwrap_or(FileHeader { number, ..*expected })
    }

    fn walk_file(&mut self, header: FileHeader) -> Result<FileEnd, StoreError> {
        self.counts.insert(header.number, (0, 0));
        if let Some((at, sight)) = self.catalog.blemish(header.number) {
            self.find(header.number, at, 0, sight, Proof::Proven);
        }
        let mut walk = open(self.disk, self.catalog, header)?;
        loop {
            match walk.step()? {
                Step::Commit { at, commit, crc } => {
                    if let Some(end) = self.judge_commit(&mut walk, at, commit, crc)? {
                        return Ok(end);
                    }
                }
                Step::Record { len, .. } => self.count(header.number, len),
                Step::Born => {}
                Step::Seal => return Ok(FileEnd::Continues),
                Step::Invalid { at, next, sight } => {
                    if let Some(end) = self.judge_invalid(&mut walk, at, next, sight)? {
                        return Ok(end);
                    }
                }
            }
        }
    }

    /// Takes a commit that follows the one before; one that does not is no better than garbage.
    fn judge_commit(
        &mut self,
        walk: &mut Walk<D::File>,
        at: u64,
        commit: Commit,
        crc: u32,
    ) -> Result<Option<FileEnd>, StoreError> {
        let follows = self.is_broken || self.last.is_none_or(|last| last.crc == commit.chain);
        if !follows {
            let proof = self.proofs.beyond(commit.lsn, walk.header().number, at + COMMIT_LEN)?;
            if decide(Sight::Unchained, proof) == Decision::End {
                return Ok(Some(FileEnd::Ends(at, Sight::Unchained)));
            }
            self.find(walk.header().number, at, COMMIT_LEN, Sight::Unchained, proof);
        }
        self.is_broken = false;
        self.oldest = self.oldest.max(commit.oldest);
        self.last = Some(LastCommit { file: walk.header().number, at, commit, crc });
        Ok(None)
    }

    /// The log ends at what is invalid, or the walk goes on after it.
    fn judge_invalid(
        &mut self,
        walk: &mut Walk<D::File>,
        at: u64,
        next: u64,
        sight: Sight,
    ) -> Result<Option<FileEnd>, StoreError> {
        let number = walk.header().number;
        let proof = self.proofs.beyond(walk.header().lsn_at(at), number, next)?;
        if decide(sight, proof) == Decision::End {
            return Ok(Some(FileEnd::Ends(at, sight)));
        }
        let found = walk.resync(next)?;
        self.is_broken = true;
        self.find(number, at, walk.at() - at, sight, proof);
        Ok(if found { None } else { Some(FileEnd::Continues) })
    }

    /// A file in which nothing was found was never used: the log ends before it.
    fn end_in(&self, header: FileHeader, at: u64, sight: Sight) -> End {
        let at = self.before_unusable_foot(header, at);
        End { file: header, at, is_fresh: at == HEADER_LEN, sight: Some(sight) }
    }

    /// A commit that was to close the file, and lost its seal, leaves no room to write on. It holds no record: take it back.
    fn before_unusable_foot(&self, header: FileHeader, at: u64) -> u64 {
        match self.last {
            Some(last)
                if at + FOOT_LEN > header.segment_bytes
                    && last.file == header.number
                    && last.at + COMMIT_LEN == at =>
            {
                last.at
            }
            _ => at,
        }
    }

    fn count(&mut self, file: u64, len: usize) {
        let (records, bytes) = self.counts.entry(file).or_default();
        *records += 1;
        *bytes += len as u64;
    }

    fn find(&mut self, file: u64, at: u64, bytes: u64, what: Sight, proof: Proof) {
        let damage = Damage { file: Name::Journal(file).to_string(), at, bytes, what };
        self.findings.push((file, decide(what, proof), damage));
    }

    /// Forgets what was found below the oldest needed file, and adds what should be there and is not.
    pub(crate) fn conclude(mut self, end: End) -> Survey {
        let lowest = self.catalog.journals.keys().next().copied().unwrap_or(end.file.number);
        let oldest = if self.oldest == 0 { lowest } else { self.oldest.min(end.file.number) };
        if lowest > oldest {
            // The file that is missing at the end may have said that older files are not needed.
            let missing = if end.sight == Some(Sight::FileMissing) { end.file.number } else { oldest };
            self.find(missing, 0, 0, Sight::FileMissing, Proof::Proven);
        }
        let is_after = |number: u64| number > end.file.number || (number == end.file.number && end.is_fresh);
        let numbers = || self.catalog.journals.keys().copied();
        let is_read =
            |number: &u64| *number >= oldest && !is_after(*number) && self.counts.contains_key(number);
        let counts = || self.counts.range(oldest..).map(|(_, count)| count);
        let taken_back = self.last.filter(|last| last.file == end.file.number && last.at == end.at);
        Survey {
            end,
            files: numbers().filter(is_read).filter_map(|number| self.catalog.header(number).ok()).collect(),
            below: numbers().filter(|number| *number < oldest).collect(),
            beyond: numbers().filter(|number| is_after(*number)).collect(),
            damage: self.pick(oldest, |decision| matches!(decision, Decision::Damage | Decision::Refuse)),
            notes: self.pick(oldest, |decision| decision == Decision::Note),
            records: counts().map(|(records, _)| records).sum(),
            bytes: counts().map(|(_, bytes)| bytes).sum(),
            oldest,
            life: self.last.map(|last| last.commit.life),
            chain: taken_back.map_or(self.last.map_or(0, |last| last.crc), |last| last.commit.chain),
            synced: self.last.map_or(Lsn(0), |last| last.commit.durable),
        }
    }

    fn pick(&self, oldest: u64, wanted: impl Fn(Decision) -> bool) -> Vec<Damage> {
        let needed = self.findings.iter().filter(|(file, decision, _)| *file >= oldest && wanted(*decision));
        needed.map(|(_, _, damage)| damage.clone()).collect()
    }
}
