//! Cells of SCTP, vsock, TIPC and AF_XDP sockets.

use super::item::{HexItem, Item, line_break};
use super::options::{Options, show};
use super::state::sctp_state;
use crate::pieces::{list, put, when};
use record::rows::{SctpNumbers, SctpPart, SockType, TipcPart, XdpPart, XdpStats, XdpUmem, sctp_addrs};

/// Appends the addresses of both ends and the members of `struct sctp_info`, except zeros.
pub(super) fn put_sctp(out: &mut Vec<u8>, part: &SctpPart<'_>) {
    for (words, array) in [(" locals:", part.locals), (" peers:", part.peers)] {
        let Some(array) = array else { continue };
        put!(out, words);
        for (i, addr) in sctp_addrs(array).enumerate() {
            put!(out, when(i > 0, ","), addr);
        }
    }
    if let Some(numbers) = &part.numbers {
        put_numbers(out, numbers);
    }
}

fn put_numbers(out: &mut Vec<u8>, n: &SctpNumbers<'_>) {
    put!(out, HexItem(" tag:", n.tag()));
    if let Some(state) = n.state().filter(|&state| state != 0) {
        put!(out, " state:", sctp_state(u8::try_from(state).unwrap_or(u8::MAX)));
    }
    put!(out, Item(" rwnd:", n.rwnd()), Item(" unackdata:", n.unackdata()), Item(" penddata:", n.penddata()));
    put!(out, Item(" instrms:", n.instrms()), Item(" outstrms:", n.outstrms()), Item(" inqueue:", n.inqueue()));
    put!(out, Item(" outqueue:", n.outqueue()), Item(" overerr:", n.overall_error()));
    put!(out, Item(" maxburst:", n.max_burst()), Item(" maxseg:", n.maxseg()), Item(" prwnd:", n.peer_rwnd()));
    put!(out, HexItem(" ptag:", n.peer_tag()), Item(" pcapable:", n.peer_capable()), Item(" psack:", n.peer_sack()));
    put!(out, Item(" autoclose:", n.autoclose()), Item(" adapind:", n.adaptation_ind()));
    put!(out, Item(" pdpoint:", n.pd_point()), Item(" nodealy:", n.nodelay()), Item(" nofrag:", n.disable_fragments()));
    put!(out, Item(" v4mapped:", n.v4mapped()), Item(" fraginl:", n.frag_interleave()));
}

/// Appends a CID or a port of a vsock socket: `*` for any.
pub(super) fn put_vsock(out: &mut Vec<u8>, n: u32) {
    put!(out, if n == u32::MAX { Err("*") } else { Ok(n) });
}

/// Appends the items of `--tipcinfo`.
pub(super) fn put_tipc(out: &mut Vec<u8>, tipc: &TipcPart, one_line: bool) {
    let kind = match tipc.kind {
        SockType::STREAM => "STREAM",
        SockType::DGRAM => "DGRAM",
        SockType::RDM => "RDM",
        SockType::SEQPACKET => "SEQPACKET",
        _ => "UNKNOWN",
    };
    let congested = match (tipc.link_congested, tipc.connection_congested) {
        (true, _) => " cong:link ",
        (_, true) => " cong:conn ",
        _ => " cong:none ",
    };
    put!(
        out,
        if one_line { " type:" } else { "\n type:" },
        kind,
        congested,
        " drop:",
        tipc.drops.unwrap_or(0),
        " ",
        when(tipc.published, " publ")
    );
    if let Some((service, instance)) = tipc.connection.and_then(|connection| connection.service) {
        put!(out, " via {", service, ",", instance, "} ");
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

fn put_ring(out: &mut Vec<u8>, words: &str, places: Option<u32>, options: &Options) {
    put!(out, places.map(|places| list!(line_break(options.has(show::ONE_LINE)), words, "entries:", places, ")")));
}

fn put_umem(out: &mut Vec<u8>, umem: &XdpUmem, options: &Options) {
    put!(out, line_break(options.has(show::ONE_LINE)));
    // ss prints only the letter of its `\t` if -O is given.
    let wrong = options.has(show::ONE_LINE) && options.bug_compatible;
    put!(out, when(wrong, "t"), "umem(id:", umem.id, ",size:", umem.size);
    put!(out, ",num_pages:", umem.pages, ",chunk_size:", umem.chunk_size, ",headroom:", umem.headroom, ",ifindex:");
    put!(out, umem.ifindex, ",qid:", umem.queue, ",zc:", umem.flags & 1, ",refs:", umem.refs, ")");
}

fn put_stats(out: &mut Vec<u8>, stats: &XdpStats, options: &Options) {
    put!(out, line_break(options.has(show::ONE_LINE)));
    put!(out, "stats(rx dropped:", stats.rx_dropped, ",rx invalid:", stats.rx_invalid, ",rx queue full:");
    put!(out, stats.rx_full, ",rx fill ring empty:", stats.fill_empty, ",tx invalid:", stats.tx_invalid);
    put!(out, ",tx ring empty:", stats.tx_empty, ")");
}
