//! One process of the load: opens its share of the sockets and holds them.
//!
//! It communicates with the generator through pipes: it writes `listening`, waits for a line, connects, writes `open`,
//! and waits for the end of its input. It therefore cannot outlive the generator.

use super::generator::Load;
use anyhow::{Context, Result, bail, ensure};
use std::fs::File;
use std::io::{BufRead, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::time::Duration;
use sys::socket;

/// include/uapi/linux/in.h: bind chooses no port; connect chooses one that is free for this peer.
const IP_BIND_ADDRESS_NO_PORT: i32 = 24;

/// include/uapi/linux/in.h.
const IPPROTO_IP: i32 = 0;

/// include/uapi/linux/in6.h: allows binding addresses that are on no interface.
const IPV6_FREEBIND: i32 = 78;

/// Runs the worker; `args` are its number and the load.
pub(crate) fn main(args: &[String]) -> Result<()> {
    let (number, load) = args.split_first().context("a worker needs its number")?;
    let worker = Worker { number: number.parse()?, load: Load::parse(load)? };
    bound_life(worker.load.hold_s);
    let files = testkit::sandbox::raise_open_files(worker.files())?;
    ensure!(files >= worker.files(), "{} files are needed, {files} are allowed (ulimit -Hn)", worker.files());
    if worker.number >= worker.load.processes {
        return worker.idle();
    }
    let listeners = worker.listen()?;
    say("listening")?;
    let mut lines = std::io::stdin().lock().lines();
    if lines.next().is_none() {
        return Ok(());
    }
    let held = worker.connect(&listeners)?;
    let _extra = worker.open_files()?;
    say("open")?;
    lines.for_each(drop);
    drop(held);
    Ok(())
}

/// Ends the process after this time, even if the pipes fail.
fn bound_life(seconds: u64) {
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_secs(seconds));
        std::process::exit(3);
    });
}

fn say(word: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{word}")?;
    Ok(out.flush()?)
}

struct Worker {
    number: u64,
    load: Load,
}

struct Listener {
    port: u16,
    v4: TcpListener,
    v6: Option<TcpListener>,
}

impl Worker {
    /// This worker's part of `total`.
    fn share(&self, total: u64) -> u64 {
        total / self.load.processes + u64::from(self.number < total % self.load.processes)
    }

    fn files(&self) -> u64 {
        self.share(self.load.rows) + self.load.files + 4 * (self.load.listeners / self.load.processes + 1) + 64
    }

    /// Opens files but no sockets; reading the owners has to search them.
    fn idle(&self) -> Result<()> {
        let _extra = self.open_files()?;
        say("listening")?;
        say("open")?;
        std::io::stdin().lock().lines().for_each(drop);
        Ok(())
    }

    fn open_files(&self) -> Result<Vec<File>> {
        (0..self.load.files).map(|_| Ok(File::open("/dev/null")?)).collect()
    }

    fn listen(&self) -> Result<Vec<Listener>> {
        let mine = (0..self.load.listeners).filter(|k| k % self.load.processes == self.number);
        let mut listeners = Vec::new();
        for k in mine {
            let port = port(k)?;
            let at = |ip: IpAddr| listen(SocketAddr::new(ip, port));
            let v6 = if self.load.v6_percent > 0 { Some(at(Ipv6Addr::UNSPECIFIED.into())?) } else { None };
            listeners.push(Listener { port, v4: at(Ipv4Addr::UNSPECIFIED.into())?, v6 });
        }
        Ok(listeners)
    }

    fn connect(&self, listeners: &[Listener]) -> Result<Vec<OwnedFd>> {
        let connections = self.share(self.load.rows / 2);
        let mut held = Vec::with_capacity(2 * connections as usize);
        for i in 0..connections {
            held.extend(self.pair(i, listeners)?);
        }
        for i in 0..self.share(self.load.time_wait) {
            // The client's end is closed first and enters TIME_WAIT.
            let [client, server] = self.pair(connections + i, listeners)?;
            drop(client);
            drop(server);
        }
        Ok(held)
    }

    /// Both ends of this worker's `i`th connection.
    fn pair(&self, i: u64, listeners: &[Listener]) -> Result<[OwnedFd; 2]> {
        let listener = &listeners[i as usize % listeners.len()];
        // The IPv6 connections are spread evenly over any 100 consecutive ones: 7919 and 100 have no common factor.
        let six = listener.v6.as_ref().filter(|_| i * 7919 % 100 < self.load.v6_percent);
        // Consecutive connections also differ between workers.
        let id = i * self.load.processes + self.number;
        let (from, to) =
            if six.is_some() { addresses_v6(id, self.load.clients) } else { addresses_v4(id, self.load.clients) };
        let to = SocketAddr::new(to, listener.port);
        let client = connect(from, to).with_context(|| format!("from {from}"))?;
        let (server, _) = six.unwrap_or(&listener.v4).accept()?;
        Ok([client, server.into()])
    }
}

/// A listener with a long accept queue; IPv6 listeners accept only IPv6.
fn listen(addr: SocketAddr) -> Result<TcpListener> {
    let family = if addr.is_ipv4() { socket::AF_INET } else { socket::AF_INET6 };
    let listener = socket::open(family, socket::SOCK_STREAM, 0)?;
    socket::set_number(&listener, socket::SOL_SOCKET, socket::SO_REUSEADDR, 1)?;
    if addr.is_ipv6() {
        socket::set_number(&listener, socket::IPPROTO_IPV6, socket::IPV6_V6ONLY, 1)?;
    }
    socket::bind(&listener, &addr)?;
    socket::listen(&listener, 4096)?;
    Ok(OwnedFd::from(listener).into())
}

/// Connects from `from`, which need not be on any interface; one address can have 28,000 connections to each peer.
fn connect(from: IpAddr, to: SocketAddr) -> Result<OwnedFd> {
    let family = if to.is_ipv4() { socket::AF_INET } else { socket::AF_INET6 };
    let client = socket::open(family, socket::SOCK_STREAM, 0)?;
    socket::set_number(&client, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)?;
    if to.is_ipv6() {
        socket::set_number(&client, socket::IPPROTO_IPV6, IPV6_FREEBIND, 1)?;
    }
    socket::bind(&client, &SocketAddr::new(from, 0))?;
    socket::connect(&client, &to)?;
    Ok(client.into())
}

/// The first two ports are well-known ones; the others are below the range that connections use.
fn port(k: u64) -> Result<u16> {
    match k {
        0 => Ok(80),
        1 => Ok(443),
        2..=20_000 => Ok(3_000 + k as u16),
        _ => bail!("at most 20000 listeners"),
    }
}

/// A client address from 127.32.0.0/11 upwards, and a server address of 127.0.0.1 to .4.
fn addresses_v4(id: u64, clients: u64) -> (IpAddr, IpAddr) {
    let a = id % clients;
    let client = Ipv4Addr::new(127, (32 + a / 62_500 % 200) as u8, (a / 250 % 250) as u8, (1 + a % 250) as u8);
    (client.into(), Ipv4Addr::new(127, 0, 0, (1 + id % 4) as u8).into())
}

/// Addresses of fd77::/16, which the namespace routes to its loopback interface.
fn addresses_v6(id: u64, clients: u64) -> (IpAddr, IpAddr) {
    let a = id % clients;
    let client =
        Ipv6Addr::new(0xfd77, 0xdb8, (a % 7 + 1) as u16, (a % 251) as u16, 0, 0, (a >> 16) as u16, a as u16 + 1);
    (client.into(), Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, (1 + id % 4) as u16).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn as_many_clients_as_asked_for() {
        let distinct =
            |f: fn(u64, u64) -> (IpAddr, IpAddr)| (0..10_000).map(|id| f(id, 1_000).0).collect::<BTreeSet<_>>().len();
        assert_eq!(distinct(addresses_v4), 1_000);
        assert_eq!(distinct(addresses_v6), 1_000);
    }

    #[test]
    fn shares_add_up() {
        let load = Load { rows: 1_000_002, ..Load::default() }.filled();
        let share = |number| Worker { number, load: load.clone() }.share(load.rows / 2);
        assert_eq!((0..load.processes).map(share).sum::<u64>(), 500_001);
    }
}
