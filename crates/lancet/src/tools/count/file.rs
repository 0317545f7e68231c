//! The file that a rewritten program leaves its counts in.
//!
//! [`lancet_isa::runtime`] describes its shards; here is what the header says. All numbers are little-endian.
//!
//! ```text
//!   0  8 bytes   "LANCETCF"
//!   8  u32       version
//!  12  u32       which number begins the notes of cuts (see [`super::cuts`]), or 0
//!  16  u64       number of counters
//!  24  u64       bytes of a shard
//!  32  32 bytes  fingerprint of the rewritten program's counters
//!  64  u32, text path of the rewritten program, when it was written
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lancet_isa::runtime::{CUT_CELLS, CUT_NUMBERS, HEADER_LEN, IDENTITY_LEN, SHARD_HEADER_LEN};

const MAGIC: &[u8; 8] = b"LANCETCF";
const VERSION: u32 = 2;

#[derive(Debug, thiserror::Error)]
pub enum CountsError {
    #[error("{path}: {cause}")]
    Io { path: String, cause: std::io::Error },
    #[error("{path}: not a counts file: {what}")]
    NotCounts { path: String, what: String },
}

/// What all runs of a rewritten program counted so far.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountsFile {
    /// The rewritten program.
    pub program: PathBuf,
    pub fingerprint: [u8; 32],
    /// How many processes or threads had a part of their own. None: then there are no counters either.
    pub shards: usize,
    /// The sums over all of them.
    pub counters: Vec<u64>,
    /// Where handlers took control away, as a distance from the start of the new code, and how often. With a distance of
    /// 0, where it was is not known.
    pub cuts: BTreeMap<u64, i64>,
}

/// The header of the file for a program with so many counters in shards of so many bytes.
pub fn header(program: &Path, counters: u64, cuts: u32, shard_len: u64, fingerprint: [u8; 32]) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_LEN as usize);
    header.extend(MAGIC);
    header.extend(VERSION.to_le_bytes());
    header.extend(cuts.to_le_bytes());
    header.extend(counters.to_le_bytes());
    header.extend(shard_len.to_le_bytes());
    header.extend(fingerprint);
    let path = program.as_os_str().as_encoded_bytes();
    let room = (HEADER_LEN - IDENTITY_LEN) as usize - 4;
    // Longer than the system allows: nobody will be found there.
    let path = if path.len() <= room { path } else { &[] };
    header.extend((path.len() as u32).to_le_bytes());
    header.extend(path);
    header
}

/// Tells the counters of one rewritten program from those of another.
pub fn fingerprint(notes: &[u8]) -> [u8; 32] {
    // Four sums over different parts and seeds; this is no protection against malice.
    let mut fingerprint = [0; 32];
    for (i, place) in fingerprint.chunks_exact_mut(4).enumerate() {
        let mut hasher = crc32fast::Hasher::new_with_initial(i as u32);
        hasher.update(&notes[notes.len() * i / 16..]);
        place.copy_from_slice(&hasher.finalize().to_le_bytes());
    }
    fingerprint
}

impl CountsFile {
    pub fn read(path: &Path) -> Result<CountsFile, CountsError> {
        CountsFile::read_part(path)?.checked(path)
    }

    /// The same for one of several files: in it alone, nobody may have counted anything yet.
    pub(super) fn read_part(path: &Path) -> Result<CountsFile, CountsError> {
        let name = || path.display().to_string();
        let bytes = std::fs::read(path).map_err(|cause| CountsError::Io { path: name(), cause })?;
        CountsFile::parse(&bytes).map_err(|what| CountsError::NotCounts { path: name(), what })
    }

    pub(super) fn checked(self, path: &Path) -> Result<CountsFile, CountsError> {
        if self.shards > 0 {
            return Ok(self);
        }
        let what = "no process has counted anything in it yet".to_owned();
        Err(CountsError::NotCounts { path: path.display().to_string(), what })
    }

    /// Adds what another file of the same program has.
    pub fn add(&mut self, other: &CountsFile) {
        self.shards += other.shards;
        // This one may have no shard yet.
        let counters = self.counters.len().max(other.counters.len());
        self.counters.resize(counters, 0);
        for (sum, count) in self.counters.iter_mut().zip(&other.counters) {
            *sum = sum.wrapping_add(*count);
        }
        self.add_cuts(other.cuts.iter().map(|(at, times)| (*at, *times)));
    }

    fn add_cuts(&mut self, cuts: impl Iterator<Item = (u64, i64)>) {
        for (at, times) in cuts.filter(|(_, times)| *times != 0) {
            let sum = self.cuts.entry(at).or_default();
            *sum = sum.wrapping_add(times);
        }
    }

    fn parse(bytes: &[u8]) -> Result<CountsFile, String> {
        let header = bytes.get(..HEADER_LEN as usize).ok_or("it is shorter than its header")?;
        if &header[..8] != MAGIC {
            return Err("it does not begin with LANCETCF".to_owned());
        }
        let number = |at: usize, len: usize| {
            header[at..at + len].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte))
        };
        if number(8, 4) != u64::from(VERSION) {
            return Err(format!("it has version {}, not {VERSION}", number(8, 4)));
        }
        let (counters, shard_len, path_len) = (number(16, 8), number(24, 8), number(64, 4) as usize);
        let path = header.get(68..68 + path_len.min(HEADER_LEN as usize)).ok_or("its header is damaged")?;
        let used = counters.checked_mul(8).and_then(|len| len.checked_add(SHARD_HEADER_LEN));
        if used.is_none_or(|used| used > shard_len) {
            return Err("its header is damaged".to_owned());
        }
        let mut file = CountsFile {
            program: PathBuf::from(String::from_utf8_lossy(path).into_owned()),
            fingerprint: header[32..64].try_into().unwrap_or_default(),
            shards: 0,
            counters: vec![0; 0],
            cuts: BTreeMap::new(),
        };
        let first_cut = number(12, 4) as usize;
        // A shard that the file has not all of was never mapped.
        for shard in bytes[HEADER_LEN as usize..].chunks_exact(usize::try_from(shard_len).unwrap_or(usize::MAX)) {
            file.shards += 1;
            file.counters.resize(counters as usize, 0);
            let counts = shard[SHARD_HEADER_LEN as usize..].chunks_exact(8);
            for (sum, count) in file.counters.iter_mut().zip(counts) {
                *sum = sum.wrapping_add(u64::from_le_bytes(count.try_into().unwrap_or_default()));
            }
            if first_cut > 0 {
                let value = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
                let numbers: Vec<u64> =
                    shard[SHARD_HEADER_LEN as usize..].chunks_exact(8).skip(first_cut).map(value).collect();
                let cells = numbers.chunks_exact(CUT_NUMBERS as usize).take(CUT_CELLS as usize);
                file.add_cuts(cells.map(|cell| (cell[0], cell[1] as i64)));
            }
        }
        Ok(file)
    }
}
