//! Remembers the TCP rows that a walk has handed out, in case it is interrupted and netlink has to read the rest.
//!
//! An interrupted walk has handed out complete chains of the kernel's tables, so of all sockets with the same endpoints
//! (SO_REUSEPORT listeners) either all were handed out or none. Netlink reads everything once more, and for each pair
//! of endpoints as many rows are skipped as were handed out: no socket is confused with another. Sockets that appeared
//! or ended in between are treated as in any read of a changing table.
use std::collections::HashMap;

use record::Addr;
use record::hash::{mix_into, mix_words};
use record::rows::Socket;

/// 8 bytes per row, recorded with one store; they are only used if the walk is interrupted.
#[derive(Debug, Default)]
pub(crate) struct HandedOut {
    /// Prevents others from choosing addresses whose rows count as the same.
    secret: u64,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// Records nothing, because no other backend will take over.
    #[default]
    Off,
    Noting(Vec<u64>),
    /// For each pair of endpoints, the number of rows that were handed out and have not been skipped yet.
    Finishing(HashMap<u64, u32>),
}

impl HandedOut {
    /// Records rows if netlink takes over after an interruption. `secret` is the secret of the walk's decoder.
    pub(crate) fn new(secret: u64, is_followed: bool) -> HandedOut {
        HandedOut { secret, state: if is_followed { State::Noting(Vec::new()) } else { State::Off } }
    }

    /// Starts to compare, because rows come from another backend from now on.
    pub(crate) fn finish(&mut self) {
        if let State::Noting(noted) = std::mem::take(&mut self.state) {
            let mut out = HashMap::with_capacity(noted.len());
            noted.into_iter().for_each(|ends| *out.entry(ends).or_default() += 1);
            self.state = State::Finishing(out);
        }
    }

    /// Records a row of the walk. True if it was already handed out.
    #[inline]
    pub(crate) fn is_out_by_ends(&mut self, ends: u64) -> bool {
        match &mut self.state {
            State::Off => false,
            State::Noting(noted) => {
                noted.push(ends);
                false
            }
            State::Finishing(out) => remove_one(out, ends),
        }
    }

    /// True if the walk has handed out this row of another backend.
    #[inline]
    pub(crate) fn is_out(&mut self, row: &Socket<'_>) -> bool {
        let State::Finishing(out) = &mut self.state else { return false };
        remove_one(out, ends_of(self.secret, row))
    }
}

fn remove_one(out: &mut HashMap<u64, u32>, ends: u64) -> bool {
    match out.get_mut(&ends) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        _ => false,
    }
}

/// The endpoints of a socket as one number, the same for every backend.
fn ends_of(secret: u64, row: &Socket<'_>) -> u64 {
    let words = |addr| match addr {
        Addr::V4(octets) => octets.to_vec(),
        Addr::V6(octets) => octets.to_vec(),
    };
    let both = [words(row.local.addr), words(row.peer.addr)].concat();
    let ports = [row.local.port.to_ne_bytes(), row.peer.port.to_ne_bytes()];
    let ports = ports.as_flattened().first_chunk().map_or(0, |ports| u32::from_ne_bytes(*ports));
    ends_key(mix_words(secret, &both), ports, row.ifindex, row.netns_id, row.family)
}

/// `ports` contains both ports in the layout of a row; sockets bound to different interfaces may have the same
/// addresses.
#[inline(always)]
pub(crate) fn ends_key(addresses: u64, ports: u32, ifindex: u32, netns_id: u64, family: u8) -> u64 {
    mix_into(mix_into(addresses, u64::from(ports) | u64::from(ifindex) << 32), netns_id ^ u64::from(family)) | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::Endpoint;

    fn row(port: u16) -> Socket<'static> {
        Socket { local: Endpoint { addr: Addr::V4([10, 0, 0, 1]), port }, family: 2, ..Socket::EMPTY }
    }

    #[test]
    fn as_many_are_left_out_as_are_out() {
        let mut handed = HandedOut::new(7, true);
        for port in [80, 80, 81] {
            assert!(!handed.is_out_by_ends(ends_of(7, &row(port))));
            assert!(!handed.is_out(&row(port)), "the walk goes on");
        }
        handed.finish();
        let found = [80, 80, 80, 80, 81, 82].map(|port| handed.is_out(&row(port)));
        assert_eq!(found, [true, true, false, false, true, false]);
    }

    /// Flips the bits that a plain multiplication lets through for any secret.
    #[test]
    fn chosen_ends_cannot_collide_with_others() {
        for secret in 0..200u64 {
            let of = |a: u64, b: u64| mix_words(secret, &[a.to_ne_bytes(), b.to_ne_bytes()].concat());
            assert_ne!(of(1, 2), of(1 ^ 1 << 63, 2 ^ 1 << 63 ^ 1 << 34));
        }
    }

    #[test]
    fn without_a_follower_nothing_is_noted() {
        let mut handed = HandedOut::new(7, false);
        assert!(!handed.is_out_by_ends(5));
        handed.finish();
        assert!(!handed.is_out_by_ends(5) && matches!(handed.state, State::Off));
    }
}
