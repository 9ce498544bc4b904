//! Plans of requests on the command line.

use crate::flags::request::Request;
use engine::{Ast, FilterError, Plan};
use record::{Expr, Schema, Table};

pub(super) use tables::plan::PlanError;

/// The plan of `request` over `T`, if the filter tests only fields of `T`.
pub(super) fn of_request<T: Table>(request: &Request) -> Result<Plan<T>, PlanError> {
    tables::plan::of_request(&request.table())
}

/// Parses the filter of `table`. Errors propose the filter that was probably meant.
pub(super) fn parse(table: Schema, request: &Request) -> Result<Ast, FilterError> {
    tables::plan::parse(table, &request.table())
}

/// The filter over the fields of `table`, with names and times resolved.
pub(super) fn bind(table: Schema, request: &Request, filter: &Ast) -> Result<Expr, FilterError> {
    tables::plan::bind(table, &request.table(), filter)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use record::Table;
    use record::rows::Sockets;

    fn names(line: &str) -> Vec<String> {
        let request = Request::of_line(line).unwrap();
        let plan = of_request::<Sockets>(&request).unwrap();
        plan.columns().0.iter().map(|column| column.name.to_string()).collect()
    }

    fn wrong(line: &str) -> String {
        let request = Request::of_line(line).unwrap();
        let ast = engine::filter::parse(&request.shown.filter).unwrap();
        tables::plan::plan::<Sockets>(&request.table(), &ast)
            .map_or_else(|wrong| wrong.to_string(), |_| "planned".to_owned())
    }

    #[test]
    fn issue_10_rates_need_rounds() {
        for (line, place) in [
            ("--by process --sum bytes_out_per_s", "--sum cannot use `bytes_out_per_s`"),
            ("--by change", "--by cannot use `change`"),
            ("--by process --avg recv_q,retrans_per_s", "--avg cannot use `retrans_per_s`"),
            ("--sort bytes_in_per_s:desc", "--sort cannot use `bytes_in_per_s`"),
            ("proto = tcp and not (change = new or state = listen)", "the filter cannot use `change`"),
        ] {
            let says = wrong(line);
            assert!(says.starts_with(place) && says.ends_with("add --watch"), "{line}: {says}");
            assert_eq!(wrong(&format!("{line} --watch")), "planned");
        }
        assert_eq!(wrong("--columns bytes_in_per_s"), "planned", "a column shows that it is empty");
    }

    #[test]
    fn rounds_that_show_rates_are_ordered_by_them() {
        fn order<T: Table>(line: &str) -> String {
            let request = Request::of_line(line).unwrap();
            let ast = engine::filter::parse(&request.shown.filter).unwrap();
            let asked = tables::plan::in_fields(Schema::from_table::<T>(), &request.table(), &ast).unwrap();
            let keys: Vec<&str> = asked.sort.iter().map(|key| &*key.name).collect();
            assert!(keys.is_empty() || asked.ties_by_arrival || line.contains("--sort"), "{line}");
            keys.join(" ")
        }
        for (line, sockets, flows, counters) in [
            ("--watch", "bytes_per_s", "bytes_per_s", "per_s"),
            ("", "", "", ""),
            ("--watch -o plain -c +uid", "bytes_per_s", "bytes_per_s", "per_s"),
            ("--watch -c proto,bytes_in_per_s", "bytes_per_s", "bytes_per_s", ""),
            ("--watch -c proto", "", "", ""),
            ("--watch -o json", "", "", ""),
            ("--watch --sort netns", "netns", "netns", "netns"),
            ("--watch --by netns", "", "", ""),
        ] {
            let line_of = |spec: &str| line.replace("+uid", spec);
            assert_eq!(order::<Sockets>(&line_of("+uid")), sockets, "{line}");
            assert_eq!(order::<record::rows::Flows>(&line_of("+bytes_in")), flows, "{line}");
            if !line.contains("proto") {
                assert_eq!(order::<record::rows::KernelCounters>(&line_of("+netns")), counters, "{line}");
            }
        }
    }

    #[test]
    fn issue_10_the_order_is_shown() {
        assert_eq!(names("--columns state,pid --sort rtt_us:desc,pid"), ["state", "pid", "rtt_us"]);
        assert!(names("--sort inode --no-owner").ends_with(&["inode".to_owned()]));
        assert_eq!(names("--by state --sort count"), ["state", "count"]);
    }

    #[test]
    fn issue_10_the_old_name_leads_to_the_new_one() {
        for line in ["--by proto --sum retransmits", "--sort retransmits", "--columns retransmits"] {
            assert!(wrong(line).ends_with("did you mean `timer_retransmits`?"), "{line}: {}", wrong(line));
        }
        assert!(wrong("retransmits > 1").contains("did you mean `timer_retransmits`?"), "{}", wrong("retransmits > 1"));
    }
}
