//! Replaces the programs in a build without BPF: nothing is loaded, but recordings can still be read.
use std::convert::Infallible;

use netlink::DecodeError;
use record::RowVisitor;
use record::rows::Sockets;
use sys::{Host, WITHOUT_BPF, WalkError};

use super::cache::{BackendCache, Program, WalkRequest};
use crate::backends::row_keys::Keys;

pub(super) type TcpIterator = Infallible;
pub(super) type TcpWalk = Infallible;

impl BackendCache {
    pub(crate) fn loaded(&self, _parts: u32) -> Option<Program> {
        None
    }

    pub(crate) fn open(
        &self,
        _: &Host,
        _parts: u32,
        _or_iterator: impl FnOnce() -> bool,
    ) -> Result<Program, WalkError> {
        Err(WalkError::unavailable(WITHOUT_BPF))
    }

    pub(crate) fn iterate(
        &self,
        _: &Host,
        _: &WalkRequest<'_>,
        _: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
    ) -> Result<bool, WalkError> {
        Err(WalkError::unavailable(WITHOUT_BPF))
    }

    pub(super) fn walk_kernel(
        &self,
        _: &Host,
        _: &WalkRequest<'_>,
        _: &mut impl RowVisitor<Sockets, Keys, DecodeError>,
    ) -> Result<bool, WalkError> {
        Err(WalkError::unavailable(WITHOUT_BPF))
    }

    pub(crate) fn namespaces(&self, _: &Host, _parts: u32) -> Result<Vec<(u32, u64)>, WalkError> {
        Err(WalkError::unavailable(WITHOUT_BPF))
    }
}
