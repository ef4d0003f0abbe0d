use std::path::Path;

use rustix::fs::statfs;

use crate::store::StoreError;

/// File systems whose locks and shared memory can't be relied on between hosts, by the magic
/// numbers of `statfs(2)` and `linux/magic.h`.
const NETWORK: &[(u32, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB2"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0102_1997, "9P"),
    (0x00c3_6400, "Ceph"),
    (0x0116_1970, "GFS2"),
    (0x7461_636f, "OCFS2"),
    (0x0bd0_0bd0, "Lustre"),
    (0x6573_5546, "FUSE"),
];

/// Refuses a file on a network file system: WAL needs shared memory, and locks need a kernel, that
/// all its users share (sqlite.org, "Write-Ahead Logging", section 1).
pub(super) fn refuse_network(path: &Path) -> Result<(), StoreError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // A folder that is not there (yet) is the first call's matter.
    let Ok(found) = statfs(folder) else { return Ok(()) };
    let magic = u32::try_from(found.f_type & 0xffff_ffff).unwrap_or_default();
    match NETWORK.iter().find(|(known, _)| *known == magic) {
        None => Ok(()),
        Some((_, name)) => Err(StoreError::Unusable(format!(
            "{} lies on a network file system ({name}), where SQLite can't guard locks: \
             use a local disk for one machine, or PostgreSQL for several",
            path.display()
        ))),
    }
}
