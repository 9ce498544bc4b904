//! Interfaces that ignore router advertisements.

/// An interface that receives router advertisements and ignores them because it forwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IgnoredAdverts {
    /// Its name.
    pub iface: String,
    /// Router advertisements that it has received since it was made.
    pub received: u64,
}
