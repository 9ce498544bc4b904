//! Types of pcapng blocks (draft-ietf-opsawg-pcapng), for readers of all records of a file.

/// Section header block.
pub const SECTION: u32 = 0x0a0d_0d0a;
/// Interface description block.
pub const INTERFACE: u32 = 1;
/// Packet block, which is obsolete: writers no longer use it.
pub const OBSOLETE_PACKET: u32 = 2;
/// Simple packet block.
pub const SIMPLE_PACKET: u32 = 3;
/// Name resolution block.
pub const NAMES: u32 = 4;
/// Interface statistics block.
pub const STATISTICS: u32 = 5;
/// Enhanced packet block.
pub const PACKET: u32 = 6;
/// Decryption secrets block.
pub const SECRETS: u32 = 10;
/// Custom block that may be copied.
pub const CUSTOM: u32 = 0x0bad;
/// Custom block that must not be copied into a changed file.
pub const CUSTOM_NOT_COPIED: u32 = 0x4000_0bad;

/// Option of any block: a comment.
pub const COMMENT: u16 = 1;
