//! Encapsulations that move the headers after them: VLAN tags, MPLS labels, PPPoE sessions.

use super::{Condition, Generated, Generator, HeaderPlace, Offset, PAYLOAD, TYPE};
use crate::graph::Compare;
use crate::interpret::{ANCILLARY_VLAN_PRESENT, ANCILLARY_VLAN_TAG};
use crate::link::LinkType;
use crate::numbers::{ethertype, ppp};
use crate::target::PacketOrigin;
use crate::value::Size;

const TAG_MAX: u32 = 0xfff;
const LABEL_MAX: u32 = 0xf_ffff;
const SESSION_MAX: u32 = 0xffff;
/// Bytes of a VLAN tag, and of an MPLS label.
const MOVED: u32 = 4;

impl Generator<'_> {
    pub(super) fn vlan(&mut self, number: Option<u32>) -> Generated {
        if self.labels > 0 {
            return Err("no VLAN match after MPLS".to_owned());
        }
        if self.link != LinkType::Ethernet {
            return Err(format!("no VLAN support for {}", self.link));
        }
        let is_outermost = self.tags == 0 && self.header == Offset::constant(0);
        let tag = match self.target.origin {
            PacketOrigin::Live { vlan_beside: true } if is_outermost => self.test_metadata_tag(number)?,
            _ => self.tag_inside(number)?,
        };
        self.tags += 1;
        Ok(tag)
    }

    fn tag_type(&mut self) -> Generated {
        let types = [ethertype::VLAN_OLD_SERVICE, ethertype::VLAN, ethertype::VLAN_SERVICE];
        let parts = types.map(|number| self.link_type(number));
        Ok(Condition::Any(parts.into_iter().collect::<Result<_, _>>()?))
    }

    fn check_tag(number: Option<u32>) -> Result<(), String> {
        match number {
            Some(number) if number > TAG_MAX => Err(format!("VLAN tag {number} greater than maximum {TAG_MAX}")),
            _ => Ok(()),
        }
    }

    fn tag_inside(&mut self, number: Option<u32>) -> Generated {
        let mut parts = vec![self.tag_type()?];
        Self::check_tag(number)?;
        if let Some(number) = number {
            parts.push(self.test_masked(HeaderPlace::Network, 0, Size::Half, number, TAG_MAX));
        }
        self.payload.constant = self.payload.constant.wrapping_add(MOVED);
        if let Some(link_type) = &mut self.link_type {
            link_type.constant = link_type.constant.wrapping_add(MOVED);
        }
        Ok(Condition::All(parts))
    }

    /// The tag may be in the metadata; then nothing moves. Otherwise everything after it moves four bytes.
    fn test_metadata_tag(&mut self, number: Option<u32>) -> Generated {
        let present = self.values.load(Size::Byte, None, ANCILLARY_VLAN_PRESENT);
        let one = self.values.constant(1);
        let is_beside = Condition::compare(self.values, present, Compare::Equal, one);
        let inside = self.tag_type()?;
        let moved = self.values.constant(MOVED);
        let moves = vec![Condition::Store(PAYLOAD, moved), Condition::Store(TYPE, moved), inside];
        let mut parts = vec![Condition::Any(vec![is_beside.clone(), Condition::All(moves)])];
        Self::check_tag(number)?;
        if let Some(number) = number {
            let tag = self.values.load(Size::Half, None, ANCILLARY_VLAN_TAG);
            let mask = self.values.constant(TAG_MAX);
            let tag = self.values.binary(crate::ast::Operator::And, tag, mask);
            let wanted = self.values.constant(number);
            let beside = Condition::compare(self.values, tag, Compare::Equal, wanted);
            let inside = self.test_masked(HeaderPlace::Network, 0, Size::Half, number, TAG_MAX);
            parts.push(Condition::Any(vec![
                Condition::All(vec![is_beside.clone(), beside]),
                Condition::All(vec![is_beside.negate(), inside]),
            ]));
        }
        self.payload.slot = Some(PAYLOAD);
        // The slots PAYLOAD and TYPE have the same value here, but Geneve makes them differ.
        self.link_type = self.link_type.map(|link_type| Offset { slot: Some(TYPE), ..link_type });
        Ok(Condition::All(parts))
    }

    pub(super) fn mpls(&mut self, label: Option<u32>) -> Generated {
        let mut parts = vec![match self.link {
            // The previous label must not be the last.
            _ if self.labels > 0 => self.test_masked(HeaderPlace::PreviousLabel, 2, Size::Byte, 0, 1),
            LinkType::Ethernet => self.link_type(ethertype::MPLS)?,
            LinkType::Ppp => self.link_type(ppp::MPLS)?,
            _ => return Err(format!("no MPLS support for {}", self.link)),
        }];
        if let Some(label) = label {
            if label > LABEL_MAX {
                return Err(format!("MPLS label {label} greater than maximum {LABEL_MAX}"));
            }
            parts.push(self.test_masked(HeaderPlace::Network, 0, Size::Word, label << 12, LABEL_MAX << 12));
        }
        self.network = self.network.wrapping_add(MOVED);
        self.network_without_snap = self.network_without_snap.wrapping_add(MOVED);
        self.labels += 1;
        Ok(Condition::All(parts))
    }

    pub(super) fn pppoes(&mut self, session: Option<u32>) -> Generated {
        let mut parts = vec![self.link_type(ethertype::PPPOE_SESSION)?];
        if let Some(session) = session {
            if session > SESSION_MAX {
                return Err(format!("PPPoE session number {session} greater than maximum {SESSION_MAX}"));
            }
            parts.push(self.test_masked(HeaderPlace::Network, 0, Size::Word, session, SESSION_MAX));
        }
        // Six bytes of PPPoE header, two of PPP.
        let header = self.payload.constant.wrapping_add(self.network).wrapping_add(6);
        self.link = LinkType::Ppp;
        self.is_geneve = false;
        self.header = Offset { slot: self.payload.slot, constant: header };
        self.link_type = Some(self.header);
        self.payload.constant = header.wrapping_add(2);
        self.network = 0;
        self.network_without_snap = 0;
        Ok(Condition::All(parts))
    }
}
