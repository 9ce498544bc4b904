//! Parts of a session that use several pillars: the kernel's list of namespaces, and the source of sockets for other
//! pillars.

use crate::asked::{self, Asked};
use crate::session::Session;
use record::rows::Sockets;
use record::{Accounting, Source};
use sockets::{AllNetnsSockets, SocketSource, Via};
use sys::Mode;

/// Finds the namespaces of a round. If the kernel may be used, the BPF program that later reads sockets also lists
/// those that no process and no name refers to.
pub fn find_namespaces(session: &Session, ask_the_kernel: bool, stats: &mut Accounting) {
    let reads_all = session.namespaces().is_some();
    let sockets = &session.backends().sockets;
    let listed = if ask_the_kernel && reads_all { sockets.every_namespace(session.host()) } else { None };
    session.find_namespaces(listed, stats);
}

/// Calls `then` with a source of sockets: of the session's namespace, or with all namespaces, of those `wanted` by
/// inode.
pub fn with_sockets<R>(
    session: &Session,
    via: Option<Via>,
    wanted: &dyn Fn(u64) -> bool,
    then: impl FnOnce(&dyn Source<Sockets>) -> R,
) -> R {
    let (host, netns_id, cache) = (session.host(), session.netns_id(), &session.backends().sockets);
    let options = sockets::Options { via, ..sockets::Options::new(netns_id) };
    let namespaces = session.namespaces();
    let (one, every);
    let source: &dyn Source<Sockets> = match &namespaces {
        None => {
            one = SocketSource::new(host, options).with_cache(cache);
            &one
        }
        Some(namespaces) => {
            let chosen = namespaces.list().iter().filter(|namespace| wanted(namespace.inode));
            every = AllNetnsSockets::new(host, options, chosen.map(|one| one.target(netns_id)).collect(), cache);
            &every
        }
    };
    match host.mode() {
        Mode::Live => then(source),
        _ => then(&Asked::new(source, host, asked::of_sockets)),
    }
}
