//! The timeout that governs an entry, and how low it may be set.

use record::rows::{Conntrack, CtSetting, CtState, CtStatus, ip_proto};

/// Returns the setting that determines how long such an entry is kept after its last packet. `None` if no setting does
/// (an unknown state, hardware offload, a protocol with its own timeouts).
pub fn setting_of(row: &Conntrack<'_>) -> Option<CtSetting> {
    let has = |bits| row.status.is_some_and(|status| status.contains(bits));
    if has(CtStatus::OFFLOAD) || has(CtStatus::HW_OFFLOAD) {
        return None;
    }
    match row.orig.proto {
        ip_proto::TCP => match row.state? {
            CtState::Tcp(state) => of_tcp(state),
            _ => None,
        },
        ip_proto::SCTP => match row.state? {
            CtState::Sctp(state) => of_sctp(state),
            _ => None,
        },
        ip_proto::UDP | ip_proto::UDPLITE if has(CtStatus::ASSURED) => Some(CtSetting::UdpStream),
        ip_proto::UDP | ip_proto::UDPLITE => Some(CtSetting::Udp),
        ip_proto::ICMP => Some(CtSetting::Icmp),
        ip_proto::ICMPV6 => Some(CtSetting::Icmpv6),
        ip_proto::GRE if has(CtStatus::ASSURED) => Some(CtSetting::GreStream),
        ip_proto::GRE => Some(CtSetting::Gre),
        ip_proto::DCCP => None,
        _ => Some(CtSetting::Generic),
    }
}

/// `enum tcp_conntrack`.
fn of_tcp(state: u8) -> Option<CtSetting> {
    Some(match state {
        1 | 9 => CtSetting::TcpSynSent,
        2 => CtSetting::TcpSynRecv,
        3 => CtSetting::TcpEstablished,
        4 => CtSetting::TcpFinWait,
        5 => CtSetting::TcpCloseWait,
        6 => CtSetting::TcpLastAck,
        7 => CtSetting::TcpTimeWait,
        8 => CtSetting::TcpClose,
        _ => return None,
    })
}

/// `enum sctp_conntrack`.
fn of_sctp(state: u8) -> Option<CtSetting> {
    Some(match state {
        1 => CtSetting::SctpClosed,
        2 => CtSetting::SctpCookieWait,
        3 => CtSetting::SctpCookieEchoed,
        4 => CtSetting::SctpEstablished,
        5 => CtSetting::SctpShutdownSent,
        6 => CtSetting::SctpShutdownRecd,
        7 => CtSetting::SctpShutdownAckSent,
        8 => CtSetting::SctpHeartbeatSent,
        _ => return None,
    })
}

/// Lowest sensible value of each setting, in seconds, and the reason. Settings that are not listed are left alone.
const LOWEST: &[(CtSetting, u64, &str)] = &[
    (CtSetting::TcpEstablished, 7440, "RFC 5382 requires 2 h 4 min; connections that are silent for longer break"),
    (CtSetting::TcpTimeWait, 30, "older packets no longer exist"),
    (CtSetting::TcpSynSent, 30, "a peer that has not answered by then will not answer"),
    (CtSetting::TcpSynRecv, 30, "a handshake takes a few round trips"),
    (CtSetting::TcpFinWait, 30, "the peer closes a moment later, or never"),
    (CtSetting::TcpCloseWait, 30, "a program that has not closed by then is slow or faulty"),
    (CtSetting::Udp, 30, "the kernel's default; programs send keep-alives more often"),
    (CtSetting::UdpStream, 120, "RFC 4787 requires 2 min"),
    (CtSetting::Icmp, 30, "the kernel's default; RFC 5508 requires 60 s"),
    (CtSetting::Icmpv6, 30, "the kernel's default; RFC 5508 requires 60 s"),
    (CtSetting::Generic, 60, "tunnels send more often"),
];

/// Returns how low `setting`, which is now `seconds`, may be set; `None` if it should be left alone.
pub(super) fn lower(setting: CtSetting, seconds: u64) -> Option<(u64, &'static str)> {
    let (_, lowest, why) = LOWEST.iter().find(|(known, ..)| *known == setting)?;
    (*lowest < seconds).then_some((*lowest, *why))
}
