//! Three hosts in a row: a client, a router, and a server.

use crate::netns::Lab;

/// A client in 192.0.2.0/24 and 2001:db8::/64, a server in 172.17.0.0/24 and fd17::/64, and the router between them.
#[derive(Debug)]
pub struct Routed {
    /// 192.0.2.10 and 2001:db8::10, on `c0`.
    pub client: Lab,
    /// 192.0.2.1 and 2001:db8::1 on `c1`; 172.17.0.1 and fd17::1 on `s1`. Forwards.
    pub router: Lab,
    /// 172.17.0.2 and fd17::2, on `s0`.
    pub server: Lab,
}

impl Routed {
    /// Makes the three labs with `purpose` in their names.
    ///
    /// # Panics
    /// Like [`Lab::new`].
    pub fn new(purpose: &str) -> Routed {
        let [client, router, server] = ["c", "r", "s"].map(|part| Lab::new(&format!("{purpose}{part}")));
        let sides = [
            (&client, "c0", "c1", ["192.0.2.10/24", "2001:db8::10/64"], ["192.0.2.1/24", "2001:db8::1/64"]),
            (&server, "s0", "s1", ["172.17.0.2/24", "fd17::2/64"], ["172.17.0.1/24", "fd17::1/64"]),
        ];
        for (lab, near, far, own, routers) in sides {
            lab.ip(&["link", "add", near, "type", "veth", "peer", "name", far, "netns", router.name()]);
            for (lab, dev, addrs) in [(lab, near, own), (&router, far, routers)] {
                addrs.iter().for_each(|addr| match addr.contains(':') {
                    true => lab.ip(&["addr", "add", addr, "dev", dev, "nodad"]),
                    false => lab.ip(&["addr", "add", addr, "dev", dev]),
                });
                lab.ip(&["link", "set", dev, "up"]);
            }
            for addr in routers {
                let gateway = addr.split('/').next().unwrap_or(addr);
                lab.ip(&["route", "add", "default", "via", gateway]);
            }
        }
        for knob in ["net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"] {
            router
                .run_inside(|| std::fs::write(format!("/proc/sys/{knob}"), "1"))
                .expect("root may make its own namespace forward");
        }
        Routed { client, router, server }
    }
}
