//! The privileges that a capture needs while it parses packets.

use super::Capture;
use engine::Plan;
use export::{Address, Target};
use packet_files::{can_write_unprivileged, folder_of};
use record::LookupId;
use record::rows::CapturedPackets;
use runtime::rights::{NeededRights, account};
use shipping::ShipRequest;
use std::path::{Path, PathBuf};
use sys::caps::{Cap, CapSet};

impl Capture {
    /// The privileges for parsing packets. The error is about `-Z`.
    pub(super) fn needed_rights(&self, plan: &Plan<CapturedPackets>) -> Result<NeededRights, String> {
        let ship = self.request.ship.as_ref();
        let account = self.user.as_deref().map(account).transpose()?;
        let series = self.output.as_deref().filter(|_| self.rotation.is_some());
        let mut paths = ship.into_iter().flat_map(files).chain(series);
        let is_somebody_elses = paths.any(|path| !can_write_unprivileged(path));
        let caps = if is_somebody_elses && account.is_none() { &[Cap::DacOverride][..] } else { &[] };
        Ok(NeededRights {
            account,
            caps: CapSet::from_caps(caps),
            // For a packet file, names are read earlier.
            reads_files: ship.is_some()
                || self.output.is_none() && LookupId::ALL.into_iter().any(|id| plan.needs_lookup(id)),
            writable: ship.map(writable).unwrap_or_default(),
            makes_files_in: series.map(|path| folder_of(path).to_owned()).into_iter().collect(),
            ships_files: ship.is_some(),
            uses_network: ship.is_some() || self.request.resolve.is_some(),
            starts_programs: ship.and_then(|ship| ship.rotation).is_some_and(|rotation| rotation.packer.is_some()),
            is_verbose: self.is_verbose,
        })
    }
}

/// The paths that outputs open themselves, at the start and after rotation.
fn files(ship: &ShipRequest) -> impl Iterator<Item = &Path> {
    ship.targets.iter().filter_map(|target: &Target| match &target.address {
        Address::File(path) => Some(path.as_path()),
        _ => None,
    })
}

/// Directories in which the parsing thread itself creates and removes files: the spool, and the control socket's.
fn writable(ship: &ShipRequest) -> Vec<PathBuf> {
    let spool = ship.spool.iter().map(|spool| spool.dir.clone());
    let control = ship.control.iter().filter_map(|path| path.parent().map(Path::to_owned));
    // A directory that does not exist cannot be allowed; opening it has already failed.
    spool.chain(control).filter(|path| path.is_dir()).collect()
}
