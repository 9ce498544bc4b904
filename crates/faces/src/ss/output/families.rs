//! Cells of SCTP, vsock, TIPC and AF_XDP sockets.

use super::item::put_item;
use super::options::Options;
use super::state::sctp_state;
use record::rows::{SctpNumbers, SctpPart, SockType, TipcPart, XdpPart, XdpStats, XdpUmem, sctp_addrs};
use record::text::{put_addr, put_hex, put_u64};

/// Appends the addresses of both ends and the members of `struct sctp_info`, except zeros.
pub(super) fn put_sctp(out: &mut Vec<u8>, part: &SctpPart<'_>) {
    for (words, array) in [(" locals:", part.locals), (" peers:", part.peers)] {
        let Some(array) = array else { continue };
        out.extend_from_slice(words.as_bytes());
        for (i, addr) in sctp_addrs(array).enumerate() {
            if i > 0 {
                out.push(b',');
            }
            put_addr(out, addr);
        }
    }
    if let Some(numbers) = &part.numbers {
        put_numbers(out, numbers);
    }
}

fn put_numbers(out: &mut Vec<u8>, n: &SctpNumbers<'_>) {
    put_tag(out, " tag:", n.tag());
    if let Some(state) = n.state().filter(|&state| state != 0) {
        out.extend_from_slice(b" state:");
        out.extend_from_slice(sctp_state(u8::try_from(state).unwrap_or(u8::MAX)).as_bytes());
    }
    put_nonzero(
        out,
        &[
            (" rwnd:", n.rwnd()),
            (" unackdata:", n.unackdata()),
            (" penddata:", n.penddata()),
            (" instrms:", n.instrms()),
            (" outstrms:", n.outstrms()),
            (" inqueue:", n.inqueue()),
            (" outqueue:", n.outqueue()),
            (" overerr:", n.overall_error()),
            (" maxburst:", n.max_burst()),
            (" maxseg:", n.maxseg()),
            (" prwnd:", n.peer_rwnd()),
        ],
    );
    put_tag(out, " ptag:", n.peer_tag());
    put_nonzero(
        out,
        &[
            (" pcapable:", n.peer_capable()),
            (" psack:", n.peer_sack()),
            (" autoclose:", n.autoclose()),
            (" adapind:", n.adaptation_ind()),
            (" pdpoint:", n.pd_point()),
            // ss misspells it like this.
            (" nodealy:", n.nodelay()),
            (" nofrag:", n.disable_fragments()),
            (" v4mapped:", n.v4mapped()),
            (" fraginl:", n.frag_interleave()),
        ],
    );
}

fn put_tag(out: &mut Vec<u8>, words: &str, tag: Option<u64>) {
    if let Some(tag) = tag.filter(|&tag| tag != 0) {
        out.extend_from_slice(words.as_bytes());
        put_hex(out, tag);
    }
}

fn put_nonzero(out: &mut Vec<u8>, items: &[(&str, Option<u64>)]) {
    for (words, n) in items {
        if let Some(n) = n.filter(|&n| n != 0) {
            put_item(out, words, n);
        }
    }
}

/// Appends a CID or a port of a vsock socket: `*` for any.
pub(super) fn put_vsock(out: &mut Vec<u8>, n: u32) {
    if n == u32::MAX {
        return out.push(b'*');
    }
    put_u64(out, n.into());
}

/// Appends the items of `--tipcinfo`.
pub(super) fn put_tipc(out: &mut Vec<u8>, tipc: &TipcPart, one_line: bool) {
    out.extend_from_slice(if one_line { b" type:" } else { b"\n type:" });
    out.extend_from_slice(match tipc.kind {
        SockType::STREAM => b"STREAM",
        SockType::DGRAM => b"DGRAM",
        SockType::RDM => b"RDM",
        SockType::SEQPACKET => b"SEQPACKET",
        _ => b"UNKNOWN",
    });
    out.extend_from_slice(match (tipc.link_congested, tipc.connection_congested) {
        (true, _) => b" cong:link ",
        (_, true) => b" cong:conn ",
        _ => b" cong:none ",
    });
    put_item(out, " drop:", tipc.drops.unwrap_or(0).into());
    out.push(b' ');
    if tipc.published {
        out.extend_from_slice(b" publ");
    }
    if let Some((service, instance)) = tipc.connection.and_then(|connection| connection.service) {
        put_item(out, " via {", service.into());
        put_item(out, ",", instance.into());
        out.extend_from_slice(b"} ");
    }
}

/// Appends rings, memory and counters of an AF_XDP socket, one per line.
pub(super) fn put_xdp(out: &mut Vec<u8>, xdp: &XdpPart, options: &Options) {
    put_ring(out, "rx(", xdp.rx_ring, options);
    put_ring(out, "tx(", xdp.tx_ring, options);
    if let Some(umem) = &xdp.umem {
        put_umem(out, umem, options);
        put_ring(out, "fr(", xdp.fill_ring, options);
        put_ring(out, "cr(", xdp.completion_ring, options);
    }
    if let Some(stats) = &xdp.stats {
        put_stats(out, stats, options);
    }
}

fn put_break(out: &mut Vec<u8>, options: &Options) {
    out.extend_from_slice(if options.one_line { b" " } else { b"\n\t" });
}

fn put_ring(out: &mut Vec<u8>, words: &str, places: Option<u32>, options: &Options) {
    let Some(places) = places else { return };
    put_break(out, options);
    out.extend_from_slice(words.as_bytes());
    put_item(out, "entries:", places.into());
    out.push(b')');
}

fn put_umem(out: &mut Vec<u8>, umem: &XdpUmem, options: &Options) {
    put_break(out, options);
    // ss prints only the letter of its `\t` if -O is given.
    if options.one_line && options.bug_compatible {
        out.push(b't');
    }
    put_item(out, "umem(id:", umem.id.into());
    put_item(out, ",size:", umem.size);
    put_item(out, ",num_pages:", umem.pages.into());
    put_item(out, ",chunk_size:", umem.chunk_size.into());
    put_item(out, ",headroom:", umem.headroom.into());
    put_item(out, ",ifindex:", umem.ifindex.into());
    put_item(out, ",qid:", umem.queue.into());
    put_item(out, ",zc:", (umem.flags & 1).into());
    put_item(out, ",refs:", umem.refs.into());
    out.push(b')');
}

fn put_stats(out: &mut Vec<u8>, stats: &XdpStats, options: &Options) {
    put_break(out, options);
    put_item(out, "stats(rx dropped:", stats.rx_dropped);
    put_item(out, ",rx invalid:", stats.rx_invalid);
    put_item(out, ",rx queue full:", stats.rx_full);
    put_item(out, ",rx fill ring empty:", stats.fill_empty);
    put_item(out, ",tx invalid:", stats.tx_invalid);
    put_item(out, ",tx ring empty:", stats.tx_empty);
    out.push(b')');
}
