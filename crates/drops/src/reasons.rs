//! Names of the kernel's reasons, by number.
use crate::backend::ReasonNames;

/// Bits of a reason below the number of the subsystem (`SKB_DROP_REASON_SUBSYS_SHIFT`).
const SUBSYSTEM_SHIFT: u32 = 16;

/// The name of a reason. Modules (openvswitch, mac80211) define their reasons in their own types, so these are shown as
/// module and number.
pub(crate) fn name(reasons: &ReasonNames, number: u32) -> String {
    if let Some((_, name)) = reasons.reasons.iter().find(|(known, _)| *known == number) {
        return name.to_string();
    }
    let subsystem = number >> SUBSYSTEM_SHIFT;
    let of_subsystem = number & ((1 << SUBSYSTEM_SHIFT) - 1);
    match reasons.subsystems.iter().find(|(known, _)| *known == subsystem && subsystem != 0) {
        Some((_, name)) => format!("{name}_{of_subsystem}"),
        None => format!("UNKNOWN_{number}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_without_a_name_keeps_its_number() {
        let reasons = ReasonNames {
            reasons: vec![(2, "NOT_SPECIFIED".into())],
            subsystems: vec![(0, "CORE".into()), (3, "OPENVSWITCH".into())],
        };
        assert_eq!(name(&reasons, 2), "NOT_SPECIFIED");
        assert_eq!(name(&reasons, 3 << 16 | 5), "OPENVSWITCH_5");
        assert_eq!((name(&reasons, 99), name(&reasons, 4 << 16)), ("UNKNOWN_99".into(), "UNKNOWN_262144".into()));
    }
}
