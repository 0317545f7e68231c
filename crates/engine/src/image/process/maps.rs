//! `/proc/PID/maps`: what a process has mapped.

use std::ops::Range;

use lancet_isa::Avma;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub range: Range<Avma>,
    pub executable: bool,
    pub offset: u64,
    /// Device and inode, as the kernel writes them; `00:00 0` for what is no file.
    pub file: (String, u64),
    /// A path, a name in brackets, or nothing. Without the mark of a deleted file.
    pub name: String,
    pub deleted: bool,
}

impl Mapping {
    pub fn len(&self) -> u64 {
        self.range.end - self.range.start
    }

    pub fn is_file(&self) -> bool {
        self.file.1 != 0
    }
}

const DELETED: &str = " (deleted)";

/// Lines that do not have the kernel's form are left out.
pub(crate) fn parse(maps: &str) -> Vec<Mapping> {
    maps.lines().filter_map(parse_line).collect()
}

/// `start-end perms offset device inode   name`, the name with newlines as `\012`.
fn parse_line(line: &str) -> Option<Mapping> {
    let mut fields = line.splitn(6, ' ');
    let mut next = || fields.next();
    let (start, end) = next()?.split_once('-')?;
    let permissions = next()?;
    let offset = hex(next()?)?;
    let device = next()?.to_owned();
    let inode = next()?.parse().ok()?;
    let name = next().unwrap_or("").trim_start_matches(' ').replace("\\012", "\n");
    let deleted = name.ends_with(DELETED);
    Some(Mapping {
        range: Avma(hex(start)?)..Avma(hex(end)?),
        executable: permissions.contains('x'),
        offset,
        file: (device, inode),
        name: name.strip_suffix(DELETED).unwrap_or(&name).to_owned(),
        deleted,
    })
}

fn hex(digits: &str) -> Option<u64> {
    u64::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_every_form() {
        let maps = parse(
            "55d0-55e0 r-xp 00001000 fe:01 1234                       /opt/a b\n\
             7f00-7f10 rw-p 00000000 00:00 0 \n\
             7f20-7f30 r-xp 00000000 00:01 77                         /memfd:jit (deleted)\n\
             7ffc-7ffe r-xp 00000000 00:00 0                          [vdso]\n\
             garbage\n",
        );
        assert_eq!(maps.len(), 4);
        assert_eq!(maps[0].name, "/opt/a b");
        assert_eq!((maps[0].offset, maps[0].executable, maps[0].file.1), (0x1000, true, 1234));
        assert_eq!((maps[1].name.as_str(), maps[1].is_file(), maps[1].executable), ("", false, false));
        assert_eq!((maps[2].name.as_str(), maps[2].deleted), ("/memfd:jit", true));
        assert_eq!((maps[3].name.as_str(), maps[3].len()), ("[vdso]", 2));
    }
}
