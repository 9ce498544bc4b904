//! Bounds of columns: the table colours cells that are out of bounds.

use super::paint::Tone;
use record::{Columns, Value};

/// The condition under which a number is out of bounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bound {
    /// It is not 0: something was lost.
    Lost,
    /// It is not 0: something was retransmitted.
    SentAgain,
    /// It is higher than this.
    Above(u64),
    /// It is higher than this percentage of another column.
    AboveShare(&'static str, u64),
    /// It is higher than another column, if the socket listens.
    AboveBacklog(&'static str),
}

/// The column that shows whether a socket listens.
const STATE: &str = "state";

/// The bounds of columns. A name has the same meaning in every table.
const BOUNDS: &[(&str, Bound)] = &[
    ("accept_q", Bound::AboveShare("accept_q_max", 100)),
    ("recv_q", Bound::AboveBacklog("send_q")),
    ("entries", Bound::AboveShare("max", 90)),
    ("fill_percent", Bound::Above(90)),
    ("drop", Bound::Lost),
    ("drop_delta", Bound::Lost),
    ("early_drop", Bound::Lost),
    ("early_drop_delta", Bound::Lost),
    ("insert_failed", Bound::Lost),
    ("insert_failed_delta", Bound::Lost),
    ("chaintoolong", Bound::Lost),
    ("lost", Bound::Lost),
    ("lost_segments", Bound::Lost),
    ("socket_drops", Bound::Lost),
    ("tipc_drops", Bound::Lost),
    ("xdp_rx_dropped", Bound::Lost),
    ("xdp_rx_full", Bound::Lost),
    ("dropped_by_iface", Bound::Lost),
    ("dropped_by_system", Bound::Lost),
    ("bytes_retrans", Bound::SentAgain),
    ("retrans", Bound::SentAgain),
    ("retrans_per_s", Bound::SentAgain),
    ("retrans_total", Bound::SentAgain),
    ("rto_retransmits", Bound::SentAgain),
    ("timer_retransmits", Bound::SentAgain),
];

/// The bounds of the columns of one table.
#[derive(Default)]
pub(super) struct Bounds(Vec<Option<PlacedBound>>);

/// A bound with the indexes of the columns that it compares.
#[derive(Clone, Copy)]
struct PlacedBound {
    bound: Bound,
    limit: Option<usize>,
    state: Option<usize>,
}

impl Bounds {
    /// Returns the bounds of these columns.
    pub(super) fn from_columns(columns: &Columns) -> Bounds {
        let place = |name: &str| columns.0.iter().position(|column| &*column.name == name);
        let of = |name: &str| {
            let (_, bound) = BOUNDS.iter().find(|(bounded, _)| *bounded == name)?;
            let limit = match bound {
                Bound::AboveShare(limit, _) | Bound::AboveBacklog(limit) => place(limit),
                _ => None,
            };
            Some(PlacedBound { bound: *bound, limit, state: place(STATE) })
        };
        Bounds(columns.0.iter().map(|column| of(&column.name)).collect())
    }

    /// Returns the tone of a cell that is out of bounds.
    pub(super) fn tone(&self, column: usize, cells: &[Value<'_>]) -> Option<Tone> {
        let placed = self.0.get(column)?.as_ref()?;
        let number = |place: usize| match cells.get(place) {
            Some(Value::U64(n) | Value::Thousandths(n)) => Some(*n),
            Some(Value::I64(n)) => u64::try_from(*n).ok(),
            _ => None,
        };
        let n = number(column)?;
        let limit = placed.limit.and_then(number);
        let is_above =
            |percent: u64| limit.is_some_and(|limit| u128::from(n) * 100 > u128::from(limit) * u128::from(percent));
        let is_out = match placed.bound {
            Bound::Lost | Bound::SentAgain => n > 0,
            Bound::Above(most) => n > most,
            Bound::AboveShare(_, percent) => is_above(percent),
            Bound::AboveBacklog(_) => {
                placed.state.and_then(|state| cells.get(state)) == Some(&Value::Name("listen")) && is_above(100)
            }
        };
        let tone = if placed.bound == Bound::SentAgain { Tone::Halfway } else { Tone::Bad };
        is_out.then_some(tone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::rows::{CaptureFiles, Findings, NatAdvices, NatStats, Sockets};
    use record::{Column, Table};

    fn tones(cells: &[(&str, Value<'_>)]) -> Vec<Option<Tone>> {
        let columns = cells.iter().map(|(name, _)| Column { name: (*name).into(), kind: record::Kind::Count });
        let bounds = Bounds::from_columns(&Columns(columns.collect()));
        let values: Vec<Value<'_>> = cells.iter().map(|(_, value)| *value).collect();
        (0..cells.len()).map(|column| bounds.tone(column, &values)).collect()
    }

    #[test]
    fn what_is_out_of_bounds_has_a_tone() {
        let listens = Value::Name("listen");
        let queues = |state, n| tones(&[("state", state), ("recv_q", Value::U64(n)), ("send_q", Value::U64(4))]);
        assert_eq!(queues(listens, 5), [None, Some(Tone::Bad), None]);
        assert_eq!(queues(listens, 4), [None, None, None]);
        assert_eq!(queues(Value::Name("established"), 5), [None, None, None]);
        let entries = |n| tones(&[("entries", Value::U64(n)), ("max", Value::U64(1000))]);
        assert_eq!((entries(900), entries(901)), (vec![None, None], vec![Some(Tone::Bad), None]));
        assert_eq!(tones(&[("drop", Value::U64(0)), ("retrans_total", Value::U64(1))]), [None, Some(Tone::Halfway)]);
        assert_eq!(tones(&[("drop", Value::Null), ("accept_q", Value::U64(9))]), [None, None], "nothing to compare");
        assert_eq!(tones(&[("drop_delta", Value::I64(-3))]), [None]);
    }

    #[test]
    fn every_bound_is_a_field() {
        fn names<T: Table>() -> impl Iterator<Item = &'static str> {
            T::FIELDS.iter().map(|field| field.name)
        }
        let known: Vec<&str> = names::<Sockets>()
            .chain(names::<NatStats>())
            .chain(names::<NatAdvices>())
            .chain(names::<CaptureFiles>())
            .chain(names::<Findings>())
            .collect();
        for (name, bound) in BOUNDS {
            assert!(known.contains(name), "{name}");
            if let Bound::AboveShare(limit, _) | Bound::AboveBacklog(limit) = bound {
                assert!(known.contains(limit), "{limit}");
            }
        }
    }
}
