//! Contents of a binary: its sections, by `readelf`, which comes with the linker.

use std::{collections::BTreeMap, fs, ops::Range, path::Path, process::Command};

use anyhow::{Context, Result, bail};

use crate::shell::{capture, printed};

/// A line for each section in which two binaries differ, or for what is in no section; none when they are equal.
pub(super) fn differing_sections(one: &Path, another: &Path) -> Result<Vec<String>> {
    let bytes_of = |binary: &Path| fs::read(binary).with_context(|| binary.display().to_string());
    let (ours, theirs) = (bytes_of(one)?, bytes_of(another)?);
    if ours == theirs {
        return Ok(Vec::new());
    }
    let (places, other_places) = (sections(one)?, sections(another)?);
    let mut found = Vec::new();
    for name in places.keys().chain(other_places.keys().filter(|it| !places.contains_key(*it))) {
        let ours = places.get(name).and_then(|place| ours.get(place.clone()));
        let theirs = other_places.get(name).and_then(|place| theirs.get(place.clone()));
        if ours != theirs {
            let bytes = |it: Option<&[u8]>| it.map_or(0, <[u8]>::len);
            found.push(format!("{name}: {} and {} bytes", bytes(ours), bytes(theirs)));
        }
    }
    if found.is_empty() {
        found.push("what is in no section".to_owned());
    }
    Ok(found)
}

/// True if the path is written in the binary.
pub(super) fn names(binary: &Path, path: &Path) -> Result<bool> {
    let mut grep = Command::new("grep");
    grep.args(["--quiet", "--text", "--fixed-strings", "--regexp"]).arg(path).arg(binary);
    let captured = capture(&mut grep)?;
    match captured.status.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        Some(_) | None => bail!("grep {}: {}", binary.display(), captured.last_words()),
    }
}

/// Sections that have bytes in the file, and their ranges.
fn sections(binary: &Path) -> Result<BTreeMap<String, Range<usize>>> {
    let mut readelf = Command::new("readelf");
    let listed = printed(readelf.args(["--wide", "--sections"]).arg(binary))?;
    Ok(listed.lines().filter_map(section).collect())
}

/// A line such as `[12] .rodata PROGBITS 000000000007a880 07a880 2c12a5 00 AMS 0 0 128`.
fn section(line: &str) -> Option<(String, Range<usize>)> {
    let mut fields = line.trim().strip_prefix('[')?.split_once(']')?.1.split_whitespace();
    let name = fields.next()?.to_owned();
    if fields.next()? == "NOBITS" {
        return None;
    }
    let mut number = || usize::from_str_radix(fields.next()?, 16).ok();
    let (_address, from, bytes) = (number()?, number()?, number()?);
    Some((name, from..from.checked_add(bytes)?))
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn the_section_of_a_changed_byte_is_named() {
        let ours = env::current_exe().unwrap();
        assert!(differing_sections(&ours, &ours).unwrap().is_empty());
        let place = sections(&ours).unwrap()[".rodata"].clone();
        let mut bytes = fs::read(&ours).unwrap();
        bytes[place.end - 1] ^= 1;
        let theirs = env::temp_dir().join(format!("holdfast-release-{}", std::process::id()));
        fs::write(&theirs, bytes).unwrap();
        let found = differing_sections(&ours, &theirs);
        fs::remove_file(&theirs).unwrap();
        let (len, found) = (place.len(), found.unwrap());
        assert_eq!(found, [format!(".rodata: {len} and {len} bytes")]);
    }

    #[test]
    fn a_path_in_a_binary_is_found() {
        let ours = env::current_exe().unwrap();
        assert!(names(&ours, Path::new("/this/path/is/here")).unwrap());
        // Put together here, so that it is not written in these tests.
        let absent = ["/this/path", "is/elsewhere"].join("/");
        assert!(!names(&ours, Path::new(&absent)).unwrap());
        assert!(names(Path::new("/there/is/no/such/binary"), &ours).is_err());
    }
}
