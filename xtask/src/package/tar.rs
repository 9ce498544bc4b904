//! Archives in the format USTAR (POSIX 1003.1-1988). Every file belongs to root and has the time of the release, so
//! that the same files always give the same bytes.

use super::files::{Kind, PackagedFile};
use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;

const BLOCK: usize = 512;

/// An archive of these files and of the folders that lead to them. Every path begins with `prefix`: `./` in Debian
/// packages, nothing in images.
pub(super) fn archive(files: &[PackagedFile], prefix: &str, time_s: u64) -> Result<Vec<u8>> {
    let (mut out, mut folders) = (Vec::new(), BTreeSet::new());
    if !prefix.is_empty() {
        out.extend(header(prefix, 0o755, b'5', 0, time_s)?);
    }
    for file in files {
        for (at, _) in file.path.match_indices('/') {
            if let Some(folder) = file.path.get(..=at).filter(|folder| folders.insert(folder.to_owned())) {
                out.extend(header(&format!("{prefix}{folder}"), 0o755, b'5', 0, time_s)?);
            }
        }
        let path = format!("{prefix}{}", file.path);
        if file.kind == Kind::Link {
            out.extend(header_to(&path, &file.content, file.mode, b'2', 0, time_s)?);
            continue;
        }
        out.extend(header(&path, file.mode, b'0', file.content.len(), time_s)?);
        out.extend(&file.content);
        out.resize(out.len().next_multiple_of(BLOCK), 0);
    }
    out.resize(out.len() + 2 * BLOCK, 0);
    Ok(out)
}

/// The header block of one member.
fn header(path: &str, mode: u32, kind: u8, size: usize, time_s: u64) -> Result<Vec<u8>> {
    header_to(path, b"", mode, kind, size, time_s)
}

/// The header block of one member with the target of a link.
fn header_to(path: &str, target: &[u8], mode: u32, kind: u8, size: usize, time_s: u64) -> Result<Vec<u8>> {
    let mut block = vec![0; BLOCK];
    let mut put = |at: usize, width: usize, text: &str| -> Result<()> {
        ensure!(text.len() <= width, "{path}: `{text}` is longer than {width} bytes");
        block.iter_mut().skip(at).zip(text.bytes()).for_each(|(place, byte)| *place = byte);
        Ok(())
    };
    // The path has 100 bytes, and further 155 for its beginning, up to a slash.
    let split = (path.len() > 100).then(|| path.match_indices('/').map(|(at, _)| at).find(|at| path.len() - at <= 101));
    match split {
        None => put(0, 100, path)?,
        Some(at) => {
            let at = at.unwrap_or(0);
            put(0, 100, path.get(at + 1..).unwrap_or_default())?;
            put(345, 155, path.get(..at).unwrap_or_default())?;
        }
    }
    put(100, 7, &format!("{mode:07o}"))?;
    put(108, 7, "0000000")?;
    put(116, 7, "0000000")?;
    put(124, 11, &format!("{size:011o}"))?;
    put(136, 11, &format!("{time_s:011o}"))?;
    put(148, 8, "        ")?;
    put(156, 1, std::str::from_utf8(&[kind])?)?;
    put(157, 100, std::str::from_utf8(target)?)?;
    put(257, 8, "ustar\x0000")?;
    put(265, 4, "root")?;
    put(297, 4, "root")?;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    let sum = format!("{sum:06o}\0 ");
    block.iter_mut().skip(148).zip(sum.bytes()).for_each(|(place, byte)| *place = byte);
    Ok(block)
}

/// The content of a member of an archive.
pub(super) fn member<'a>(archive: &'a [u8], path: &str) -> Result<&'a [u8]> {
    let mut rest = archive;
    while let Some((header, after)) = rest.split_at_checked(BLOCK) {
        let text = |from: usize, to: usize| {
            let field = header.get(from..to).unwrap_or_default();
            std::str::from_utf8(field).map(|field| field.trim_end_matches('\0'))
        };
        if text(0, 100)?.is_empty() {
            break;
        }
        let size = usize::from_str_radix(text(124, 136)?, 8)?;
        if text(0, 100)? == path {
            return after.get(..size).with_context(|| format!("{path} is cut"));
        }
        rest = after.get(size.next_multiple_of(BLOCK)..).unwrap_or_default();
    }
    anyhow::bail!("the archive lacks {path}")
}
