//! Messages of real kernels, for tests; the HOW files next to them describe how they were recorded.

/// Datagrams of the drop monitor.
pub(crate) struct NetDmFixtures {
    pub(crate) tcp4_510: &'static [u8],
    pub(crate) tcp4_612: &'static [u8],
    pub(crate) tcp6_612: &'static [u8],
    pub(crate) trap_drop: &'static [u8],
    pub(crate) trap_exception: &'static [u8],
    pub(crate) config: &'static [u8],
    pub(crate) stats: &'static [u8],
}

pub(crate) const NET_DM: NetDmFixtures = NetDmFixtures {
    tcp4_510: include_bytes!("../../../fixtures/net_dm/5.10/tcp4.nl"),
    tcp4_612: include_bytes!("../../../fixtures/net_dm/6.12/tcp4.nl"),
    tcp6_612: include_bytes!("../../../fixtures/net_dm/6.12/tcp6.nl"),
    trap_drop: include_bytes!("../../../fixtures/net_dm/6.8/trap-drop.nl"),
    trap_exception: include_bytes!("../../../fixtures/net_dm/6.8/trap-exception.nl"),
    config: include_bytes!("../../../fixtures/net_dm/6.8/config.nl"),
    stats: include_bytes!("../../../fixtures/net_dm/6.8/stats.nl"),
};
