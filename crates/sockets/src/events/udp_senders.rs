//! UDP sockets at their first send, with the sending process.
use record::rows::SocketEvents;
use record::{Accounting, Demand, Each, Offer, SourceError, Stream, StreamState};
use sys::Host;

use super::bpf::BpfEvents;
use super::{BPF, Follow, OpenError, shut_out};

/// Rows of one namespace, or of all: an opening at the first send of a socket, repeated twice a second while it sends.
/// Closings are not reported.
pub struct UdpSenders<'h>(BpfEvents<'h>);

impl<'h> UdpSenders<'h> {
    /// Starts to listen. Needs BPF, CAP_BPF and CAP_PERFMON, and Linux 6.3.
    pub fn open(host: &'h Host, follow: Follow<'h>) -> Result<UdpSenders<'h>, SourceError> {
        let blocks = open(host, &follow).map_err(shut_out)?;
        Ok(UdpSenders(BpfEvents::new(blocks)))
    }
}

#[cfg(feature = "bpf")]
fn open<'h>(host: &'h Host, follow: &Follow<'h>) -> Result<Box<dyn sys::Blocks + 'h>, OpenError> {
    let program = super::bpf::udp_senders::UdpProgram::open(host, follow)?;
    Ok(Box::new(::bpf::RingBlocks::new(program, follow.stop)))
}

#[cfg(not(feature = "bpf"))]
fn open<'h>(_: &'h Host, _: &Follow<'h>) -> Result<Box<dyn sys::Blocks + 'h>, OpenError> {
    Err(sys::WITHOUT_BPF.into())
}

impl Stream<SocketEvents> for UdpSenders<'_> {
    fn offer(&self, _: &Demand<SocketEvents>) -> Offer {
        Offer { backend: BPF, explain: vec!["UDP sockets via BPF: the first send".into()], ..Offer::default() }
    }

    fn next(
        &mut self,
        _: &Demand<SocketEvents>,
        each: &mut Each<'_, SocketEvents>,
    ) -> Result<StreamState, SourceError> {
        self.0.next(each)
    }

    fn close(&mut self) -> Accounting {
        self.0.close()
    }
}
