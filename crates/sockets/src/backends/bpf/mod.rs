//! Reads TCP with a program that walks the kernel's tables.
pub(crate) mod cache;
#[cfg(feature = "bpf")]
mod programs;
#[cfg(not(feature = "bpf"))]
#[path = "without_programs.rs"]
mod programs;
pub(crate) mod rows;

use std::error::Error;

use record::rows::{Sockets, need};
use record::{Demand, SourceFault, State, Table as _};
use sys::{Host, Mode, WalkError};

use crate::address_families::{AF_INET, AF_INET6};
use crate::backends::TableReader;
use crate::backends::bpf::cache::{Program, WalkRequest, WalkScope};
use crate::backends::bpf::rows::{COUNTED, NOT_IN_WALK, part};
use crate::backends::fault::fault_of;
use crate::backends::handed_out::HandedOut;
use crate::backends::rows::{RowOutput, WalkOutput};
use crate::backends::window::Window;
use crate::choose::Via;
use crate::keys::{self, Table};
use crate::pushdown::TableFilter;
use crate::pushdown::bytecode::Code;

impl TableReader<'_, '_, '_> {
    // Reads TCP with a program. Next to the walk, netlink reads the listeners: it finds them without visiting the
    // connections (and it also has sockets that are only bound). The iterator includes the listeners.
    pub(crate) fn by_walk(&mut self, filter: &TableFilter) {
        let (plan, replayed) = (self.plan, self.plan.host.is_replay());
        let few = filter.states & !IN_SMALL_TABLES == 0 && !replayed;
        let opened = match few || replayed {
            true => Ok(Program::Walk),
            false => plan.cache.open(plan.host, self.plan.parts, || plan.iterator_pays()),
        };
        let opened = match opened {
            Err(error) if plan.options.via != Some(Via::Bpf) => {
                return self.walk_failed(filter, error, self.stats.rows(), filter.states);
            }
            opened => opened,
        };
        // A recording may contain the listeners here or among the connections.
        let apart = if replayed { self.holds_listeners() } else { !matches!(opened, Ok(Program::Iterator)) };
        let beside = filter.states & if apart { IN_SMALL_TABLES } else { 1 << State::BOUND_INACTIVE.0 };
        if if replayed { apart } else { beside != 0 } {
            self.listeners = true;
            self.by_files_or_dumps(Via::Netlink, &TableFilter { states: beside, ..filter.clone() });
            self.listeners = false;
        }
        if self.stopped || few {
            return;
        }
        let rows = self.stats.rows();
        match opened.and_then(|own| self.walk_connections(filter, own, beside)) {
            Ok(stopped) => {
                self.stopped |= stopped;
                self.stats.add_backend(Via::Bpf.name());
            }
            Err(error) => self.walk_failed(filter, error, rows, filter.states & !beside),
        }
    }

    // Whether the recording contains the listeners separately, in one dump for both families or one for each.
    fn holds_listeners(&self) -> bool {
        let key = |table: &Table| keys::listeners_key(*table, self.plan.options.netns_id);
        [Table::Tcp, Table::Tcp4, Table::Tcp6].iter().any(|table| self.plan.host.contains(&key(table)))
    }

    fn walk_connections(&mut self, filter: &TableFilter, own: Program, beside: u32) -> Result<bool, WalkError> {
        let plan = self.plan;
        let (key, note) = (plan.key(Table::Tcp, Via::Bpf), keys::note_of(filter, &[]));
        let request = WalkRequest {
            scope: WalkScope::Own,
            parts: self.plan.parts,
            // A socket leaves the table before its state becomes CLOSE: a row with this state was released during the
            // read.
            states: filter.states & !(1 << State::CLOSE.0) & !beside,
            v4: filter.families.contains(AF_INET),
            v6: filter.families.contains(AF_INET6),
            sport: filter.sport,
            dport: filter.dport,
            key: &key,
            note: &note,
            netns_id: plan.options.netns_id,
        };
        // The program applies the rest of the filter; a recording may have been made with a weaker one.
        let behind = (plan.host.is_replay() || filter.code != Code::True).then_some(filter);
        let handed_out = &mut *self.handed_out.borrow_mut();
        *handed_out = HandedOut::new(plan.cache.random_key(), self.is_followed());
        let window = Window::new();
        let rows =
            RowOutput { each: self.each, stats: &mut self.stats, filter: behind, window, as_sent: false, handed_out };
        let mut rows = WalkOutput::new(rows, plan.host, self.cache);
        match own {
            Program::Walk => plan.cache.walk(plan.host, &request, &mut rows),
            Program::Iterator => plan.cache.iterate(plan.host, &request, &mut rows),
        }
    }

    // Whether netlink reads the sockets that an interrupted walk left out. A replay does what the recorded run did.
    fn is_followed(&self) -> bool {
        let host = self.plan.host;
        let recorded = |table: &Table| host.contains(&self.plan.key(*table, Via::Netlink));
        match host.is_replay() {
            true => [Table::Tcp, Table::Tcp4, Table::Tcp6].iter().any(recorded),
            false => self.plan.options.via != Some(Via::Bpf),
        }
    }

    // Lets netlink read the remaining sockets, unless the user insisted on the walk.
    fn walk_failed(&mut self, filter: &TableFilter, error: WalkError, rows_before: u64, states: u32) {
        let (errno, cause): (_, Box<dyn Error + Send + Sync>) = match error {
            WalkError::Unavailable(cause) => (None, cause),
            WalkError::Broken(error) => (Some(error.errno), Box::new(error)),
        };
        if self.stats.rows() > rows_before {
            self.stats.add_backend(Via::Bpf.name());
            if !self.is_followed() {
                return self.stats.incomplete(0, format!("{} are incomplete: {cause}", Table::Tcp.description()));
            }
            self.stats.add_note(format!("the rest of {} was read via netlink: {cause}", Table::Tcp.description()));
            self.handed_out.borrow_mut().finish();
            return self.by_files_or_dumps(Via::Netlink, &TableFilter { states, ..filter.clone() });
        }
        if self.plan.options.via == Some(Via::Bpf) && !self.plan.host.is_replay() {
            let fault = errno.map_or(SourceFault::Unsupported, |errno| fault_of(Some(errno)));
            return self.fail(Table::Tcp, fault, cause);
        }
        if errno.is_some() {
            self.stats.add_note(format!("{} were read via netlink: {cause}", Table::Tcp.description()));
        }
        self.by_files_or_dumps(Via::Netlink, &TableFilter { states, ..filter.clone() });
    }
}

/// States of sockets that netlink finds without visiting the table of connections.
pub(crate) const IN_SMALL_TABLES: u32 = 1 << State::LISTEN.0 | 1 << State::BOUND_INACTIVE.0;

/// Returns the parts of a row that contain the demanded fields of `tcp_info`; 0 if the walk lacks one of the fields, or
/// without such fields.
pub(crate) fn info_parts(demand: &Demand<Sockets>) -> u32 {
    let of_info = demand.fields.iter().filter_map(|&i| Sockets::FIELDS.get(i)).filter(|f| f.need & need::TCP_INFO != 0);
    let names: Vec<&str> = of_info.map(|field| field.name).collect();
    match names.iter().all(|name| COUNTED.contains(name)) {
        _ if names.is_empty() => 0,
        true => part::COUNTERS | part::RESENT | part::PATH,
        false if names.iter().any(|name| NOT_IN_WALK.contains(name)) => 0,
        false => part::INFO,
    }
}

/// The parts that the walk must copy for these `need` bits and this part of `tcp_info`.
pub(crate) fn parts_of(host: &Host, demanded: u64, info: u32) -> u32 {
    // In a replay, a counter that was left out could not be distinguished from 0.
    let recording = host.mode() == Mode::Recording;
    let counters = if info & part::INFO != 0 { part::INFO } else { part::COUNTERS };
    let resent = demanded & need::RESENT != 0 || (demanded & need::COUNTERS != 0 && recording);
    let wanted = [
        (demanded & need::TIMER != 0, part::TIMER),
        (demanded & need::QUEUES != 0, part::QUEUES),
        (demanded & need::COUNTERS != 0, counters),
        (resent, part::RESENT),
        (recording, part::PATH),
        (demanded & need::SKMEM != 0, part::MEMORY),
        (demanded & need::IDENTITY != 0, part::IDENTITY),
        (demanded & need::MARK != 0 || recording, part::MARK),
        (demanded & need::UID != 0 || recording, part::UID),
        (demanded & need::INODE != 0 || recording, part::INODE),
    ];
    wanted.iter().filter(|(wanted, _)| *wanted).fold(part::BOUND | info, |parts, (_, part)| parts | part)
}
