//! Stamp of a file: device, inode, size and times, compared to notice that the file is another one.
//! The content is not read.

use std::fs::Metadata;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Differs when a file was written, replaced by another, or stands behind a link that points
/// elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// Reads the metadata of the file that a path leads to; fails if it is no regular file.
    pub fn of(path: &Path) -> io::Result<Self> {
        let metadata = std::fs::metadata(path)?;
        // A pipe can be read once, and looks changed then.
        if metadata.is_file() {
            Ok(Self::from(&metadata))
        } else {
            Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file"))
        }
    }
}

impl From<&Metadata> for FileStamp {
    fn from(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            // `mtime` can be set back by the copier of a file; `ctime` cannot.
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
