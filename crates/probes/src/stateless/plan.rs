//! The plan: whether the ports can be published, and which addresses are rewritten into which.

use super::impossible::HELPERS;
use super::{Impossible, Publish, Transport};
use record::{Addr, Scope};

/// The facts about the host that a plan needs.
#[derive(Clone, Copy, Debug)]
pub struct HostRoutes<'p> {
    /// All addresses of the host's interfaces.
    pub addresses: &'p [Addr],
    /// Backends, each with the host's address on the backend's side; without those that are reached by the default
    /// route.
    pub towards: &'p [(Addr, Addr)],
    /// True if ports that usually need a helper are published anyway.
    pub no_helper: bool,
}

/// One published port with all its addresses resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rewrite {
    /// TCP or UDP.
    pub transport: Transport,
    /// The address that clients use.
    pub public: Addr,
    /// The port that clients use.
    pub port: u16,
    /// The address where the service listens.
    pub backend: Addr,
    /// The port where the service listens.
    pub backend_port: u16,
}

/// The rewrites, and warnings about them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The rewrites in the order of the command line.
    pub rewrites: Vec<Rewrite>,
    /// Differences from stateful NAT.
    pub warnings: Vec<String>,
}

/// Returns the plan for these ports, or all reasons against it.
pub fn plan(publishes: &[Publish], routes: &HostRoutes<'_>) -> Result<Plan, Vec<Impossible>> {
    let mut reasons: Vec<Impossible> = publishes.iter().flat_map(|publish| alone(publish, routes)).collect();
    let rewrites: Vec<Rewrite> =
        publishes.iter().filter_map(|publish| rewrite(publish, routes).map_err(|why| reasons.push(why)).ok()).collect();
    if reasons.is_empty() {
        reasons = together(publishes, &rewrites);
    }
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let warnings = warnings(&rewrites, routes);
    Ok(Plan { rewrites, warnings })
}

/// Returns the reasons against one port, independent of the others.
fn alone(publish: &Publish, routes: &HostRoutes<'_>) -> Vec<Impossible> {
    let mut reasons = Vec::new();
    let unroutable = |addr: Addr| addr.is_unspecified() || addr.is_loopback() || addr.is_multicast();
    if unroutable(publish.backend) {
        reasons.push(Impossible::BackendUnroutable(publish.clone()));
    }
    if routes.addresses.contains(&publish.backend) {
        reasons.push(Impossible::BackendIsHere(publish.clone()));
    }
    if publish.public.is_some_and(unroutable) {
        reasons.push(Impossible::PublicUnusable(publish.clone()));
    }
    let spoken = |port| HELPERS.iter().find(|helper| (helper.0, helper.1) == (publish.transport, port));
    if let Some((.., speaks)) = spoken(publish.port).or_else(|| spoken(publish.backend_port)) {
        if !routes.no_helper {
            reasons.push(Impossible::Helper { publish: publish.clone(), speaks });
        }
    }
    reasons
}

/// Fills in the address that clients use.
fn rewrite(publish: &Publish, routes: &HostRoutes<'_>) -> Result<Rewrite, Impossible> {
    let Publish { transport, port, backend, backend_port, .. } = *publish;
    let public = match publish.public {
        Some(public) => public,
        None => the_only_one(publish, routes)?,
    };
    if matches!(public, Addr::V4(_)) != matches!(backend, Addr::V4(_)) {
        return Err(Impossible::MixedFamilies(publish.clone()));
    }
    Ok(Rewrite { transport, public, port, backend, backend_port })
}

/// Returns the host's only address of the backend's family outside the backend's own network.
///
/// With state, every address of the host can map to the backend, because the entry records which one was used. Without
/// state, answers must all get the same address.
fn the_only_one(publish: &Publish, routes: &HostRoutes<'_>) -> Result<Addr, Impossible> {
    let v4 = matches!(publish.backend, Addr::V4(_));
    let far = |addr: &Addr| !matches!(addr.scope(), Scope::Loopback | Scope::Link);
    let mut candidates: Vec<Addr> =
        routes.addresses.iter().copied().filter(|addr| matches!(addr, Addr::V4(_)) == v4 && far(addr)).collect();
    // Clients do not use the address on the backend's side, unless it is the only one.
    let towards = |addr: &Addr| routes.towards.contains(&(publish.backend, *addr));
    if candidates.iter().any(|addr| !towards(addr)) {
        candidates.retain(|addr| !towards(addr));
    }
    // Clients do not use a bridge's own address: only the backend's neighbours do.
    if candidates.iter().any(|addr| !neighbours(*addr, publish.backend)) {
        candidates.retain(|addr| !neighbours(*addr, publish.backend));
    }
    candidates.sort_unstable();
    candidates.dedup();
    match candidates.as_slice() {
        [one] => Ok(*one),
        _ => Err(Impossible::NoAddress { publish: publish.clone(), candidates }),
    }
}

/// True if both are in one /16 or one /64, the usual networks of container bridges.
fn neighbours(one: Addr, other: Addr) -> bool {
    match (one, other) {
        (Addr::V4(a), Addr::V4(b)) => a[..2] == b[..2],
        (Addr::V6(a), Addr::V6(b)) => a[..8] == b[..8],
        _ => false,
    }
}

/// Returns the reasons against pairs of ports.
fn together(publishes: &[Publish], rewrites: &[Rewrite]) -> Vec<Impossible> {
    let mut reasons = Vec::new();
    for (at, (this, one)) in rewrites.iter().zip(publishes).enumerate() {
        for (other, two) in rewrites.iter().zip(publishes).skip(at + 1) {
            if this.transport != other.transport {
                continue;
            }
            if (this.public, this.port) == (other.public, other.port) {
                reasons.push(Impossible::Overlapping(one.clone(), two.clone()));
            } else if (this.backend, this.backend_port) == (other.backend, other.backend_port) {
                reasons.push(Impossible::SameBackend(one.clone(), two.clone()));
            }
        }
    }
    reasons
}

fn warnings(rewrites: &[Rewrite], routes: &HostRoutes<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for rewrite in rewrites {
        let Rewrite { public, backend, backend_port, .. } = rewrite;
        if !routes.addresses.contains(public) {
            warnings.push(format!("{public} is not an address of this host: packets to it must be routed here"));
        }
        warnings.push(format!(
            "clients that connect directly to {}:{backend_port} through this host get answers from {public}: only the \
                published port works from now on",
            super::publish::Bracketed(*backend)
        ));
    }
    warnings.push(
        "clients in the backend's network must use the backend's address: its answers do not pass through this host"
            .to_owned(),
    );
    if rewrites.iter().any(|rewrite| rewrite.transport == Transport::Udp) {
        warnings.push(
            "fragments after the first have no port and are not rewritten: UDP datagrams larger than the path MTU are \
                lost"
                .to_owned(),
        );
    }
    warnings.push(
        "open connections through stateful NAT break when the rules are applied; filter rules that accept only tracked \
            packets must also accept `ct state untracked`"
            .to_owned(),
    );
    warnings
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const WAN: Addr = Addr::V4([192, 0, 2, 1]);
    const BRIDGE: Addr = Addr::V4([172, 17, 0, 1]);
    const LOOPBACK: Addr = Addr::V4([127, 0, 0, 1]);

    fn judged(written: &[&str], addresses: &[Addr]) -> Result<Vec<Rewrite>, Vec<String>> {
        let publishes: Vec<Publish> = written.iter().map(|text| text.parse().unwrap()).collect();
        plan(&publishes, &HostRoutes { addresses, towards: &[], no_helper: false })
            .map(|plan| plan.rewrites)
            .map_err(|reasons| reasons.iter().map(Impossible::to_string).collect())
    }

    #[test]
    fn the_address_that_clients_use_is_found_where_there_is_one() {
        let rewrites = judged(&["8080:172.17.0.2:80"], &[LOOPBACK, BRIDGE, WAN]).unwrap();
        assert_eq!(rewrites[0].public, WAN);
        // As the only address it is chosen, even if it is a neighbour.
        assert_eq!(judged(&["8080:172.17.0.2:80"], &[LOOPBACK, BRIDGE]).unwrap()[0].public, BRIDGE);
        let two = judged(&["8080:172.17.0.2:80"], &[WAN, Addr::V4([198, 51, 100, 1])]).unwrap_err();
        assert!(two[0].ends_with("with one of 192.0.2.1 198.51.100.1"), "{two:?}");
        let none = judged(&["8080:[fd00::2]:80"], &[WAN]).unwrap_err();
        assert!(none[0].contains("no address of that family"), "{none:?}");
    }

    #[test]
    fn issue_10_the_address_towards_the_backend_is_left_out() {
        let (wan, inside, backend) = (Addr::V4([10, 1, 5, 1]), Addr::V4([10, 1, 9, 1]), Addr::V4([10, 1, 9, 2]));
        let publishes = ["8080:10.1.9.2:80".parse().unwrap()];
        let found = |addresses: &[Addr], towards: &[(Addr, Addr)]| {
            plan(&publishes, &HostRoutes { addresses, towards, no_helper: false })
        };
        assert_eq!(found(&[inside, wan], &[(backend, inside)]).unwrap().rewrites[0].public, wan);
        // The address towards the backend is unknown, or it is the only one.
        assert!(found(&[inside, wan], &[]).is_err());
        assert_eq!(found(&[inside], &[(backend, inside)]).unwrap().rewrites[0].public, inside);
    }

    #[test]
    fn what_cannot_be() {
        for (written, says) in [
            (&["21:172.17.0.2:21"][..], "FTP opens further ports"),
            (&["2121:172.17.0.2:21"], "FTP opens further ports"),
            (&["80:172.17.0.2:80", "80:172.17.0.3:80"], "one port for two backends"),
            (&["80:172.17.0.2:80", "81:172.17.0.2:80"], "the backend's answer does not show"),
            (&["80:192.0.2.1:8080"], "this host itself"),
            (&["80:127.0.0.1:8080"], "not routed"),
            (&["0.0.0.0:80:172.17.0.2:8080"], "not a wildcard"),
            (&["192.0.2.1:80:[fd00::2]:8080"], "IPv6 on the other"),
        ] {
            let reasons = judged(written, &[WAN, BRIDGE]).unwrap_err();
            assert!(reasons.iter().any(|reason| reason.contains(says)), "{written:?}: {reasons:?}");
        }
        // The same port of another transport is a different port.
        assert_eq!(judged(&["80:172.17.0.2:80", "80:172.17.0.3:80/udp"], &[WAN]).unwrap().len(), 2);
    }

    #[test]
    fn a_helper_can_be_denied() {
        let publishes = ["5060:172.17.0.2:5060/udp".parse().unwrap()];
        assert!(plan(&publishes, &HostRoutes { addresses: &[WAN], towards: &[], no_helper: true }).is_ok());
    }

    #[test]
    fn changes_are_listed() {
        let publishes = ["198.51.100.9:53:172.17.0.2:53/udp".parse().unwrap()];
        let said = plan(&publishes, &HostRoutes { addresses: &[WAN], towards: &[], no_helper: false })
            .unwrap()
            .warnings
            .join("\n");
        let parts =
            ["must be routed here", "connect directly to 172.17.0.2:53", "fragments", "untracked", "backend's network"];
        for words in parts {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
