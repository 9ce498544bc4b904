//! The interface that is used: BPF, else the kernel's trace.
use crate::backend::DropsVia;
use crate::error::DropsError;

/// Opens what `via` says, or the first that opens. Of none the errors of both are told.
pub(crate) fn by<B>(
    via: Option<DropsVia>,
    bpf: impl FnOnce() -> Result<B, DropsError>,
    trace: impl FnOnce() -> Result<B, DropsError>,
) -> Result<B, DropsError> {
    match via {
        Some(DropsVia::Bpf) => bpf(),
        Some(DropsVia::Tracefs) => trace(),
        Some(DropsVia::Counters) => Err(DropsError::NoPackets),
        None => bpf()
            .or_else(|bpf| trace().map_err(|trace| DropsError::Neither { bpf: Box::new(bpf), trace: Box::new(trace) })),
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
        assert_eq!(by(None, || Ok(1), || Ok(2)).unwrap(), 1);
        assert_eq!(by(None, bpf, || Ok(2)).unwrap(), 2);
        assert_eq!(by(Some(DropsVia::Tracefs), || Ok(1), || Ok(2)).unwrap(), 2);
        assert!(by(Some(DropsVia::Bpf), bpf, || Ok(2)).is_err());
        let said = by::<u8>(None, bpf, trace).unwrap_err().to_string();
        assert!(said.contains("built without BPF") && said.contains("not mounted"), "{said}");
    }
}
