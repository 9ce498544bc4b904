//! Chooses the interface: BPF, otherwise the kernel's trace, otherwise its drop monitor.
use crate::error::DropsError;
use crate::via::DropsVia;

/// Opens the interface `via`, or the first that opens. If all fail, the error contains each interface's error.
pub(crate) fn by<B>(
    via: Option<DropsVia>,
    bpf: impl FnOnce() -> Result<B, DropsError>,
    trace: impl FnOnce() -> Result<B, DropsError>,
    net_dm: impl FnOnce() -> Result<B, DropsError>,
) -> Result<B, DropsError> {
    match via {
        Some(DropsVia::Bpf) => bpf(),
        Some(DropsVia::Tracefs) => trace(),
        Some(DropsVia::Counters) => Err(DropsError::NoPackets),
        Some(DropsVia::NetDm) => net_dm(),
        None => {
            let bpf = match bpf() {
                Err(error) => Box::new(error),
                opened => return opened,
            };
            let trace = match trace() {
                Err(error) => Box::new(error),
                opened => return opened,
            };
            net_dm().map_err(|net_dm| DropsError::NoneOf { bpf, trace, net_dm: Box::new(net_dm) })
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_trace_is_for_where_bpf_fails() {
        let bpf = || Err(DropsError::WithoutBpf);
        let trace = || Err(DropsError::NoTrace("not mounted".into()));
        let net_dm = || Err(DropsError::NoMonitor("no drop monitor".into()));
        assert_eq!(by(None, || Ok(1), || Ok(2), || Ok(3)).unwrap(), 1);
        assert_eq!(by(None, bpf, || Ok(2), || Ok(3)).unwrap(), 2);
        assert_eq!(by(None, bpf, trace, || Ok(3)).unwrap(), 3);
        assert_eq!(by(Some(DropsVia::Tracefs), || Ok(1), || Ok(2), || Ok(3)).unwrap(), 2);
        assert_eq!(by(Some(DropsVia::NetDm), || Ok(1), || Ok(2), || Ok(3)).unwrap(), 3);
        assert!(by(Some(DropsVia::Bpf), bpf, || Ok(2), || Ok(3)).is_err());
        let said = by::<u8>(None, bpf, trace, net_dm).unwrap_err().to_string();
        for part in ["built without BPF", "not mounted", "no drop monitor"] {
            assert!(said.contains(part), "{said}");
        }
    }
}
