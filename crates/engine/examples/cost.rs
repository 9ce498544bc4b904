//! The cost of a row in the engine: `cargo run -p engine --profile quick --example cost [PASSES]`.
//!
//! Prints nanoseconds per row (the best of many short passes, because a busy machine interrupts the others) and a
//! number that depends on every row, so that nothing can be optimised away. Rows come from memory; a source's own work
//! is not included.
#![forbid(unsafe_code)]

use engine::{Fold, OneRound, Plan, PlanRequest, Predicate, SortKey, columns, filter};
use record::rows::{Endpoint, Socket, Sockets};
use record::{
    Accounting, Addr, Columns, Demand, Lookups, Next, Round, Scan, Schema, Sink, SinkError, Source, State, Value,
    full_scan,
};
use std::time::Instant;

/// Repeats a few rows: a real source has just decoded its rows, so they are in the cache.
struct Canned {
    rows: Vec<Socket<'static>>,
    times: usize,
    passes: usize,
}

impl Canned {
    fn each(&self, mut each: impl FnMut(&Socket<'static>)) {
        (0..self.times).for_each(|_| self.rows.iter().for_each(&mut each));
    }
}

impl Source<Sockets> for Canned {
    fn prepare(&self, _: &Demand<Sockets>) -> Box<dyn Scan<Sockets> + '_> {
        full_scan::<Sockets, _>("canned", "canned rows", |each| {
            let mut seen = 0;
            self.each(|row| {
                seen += 1;
                let _ = each(row);
            });
            Ok(Accounting { seen, ..Accounting::default() })
        })
    }
}

/// Counts cells.
#[derive(Default)]
struct Cells(u64);

impl Sink for Cells {
    fn begin(&mut self, _: &Columns, _: Option<Round>) -> Result<(), SinkError> {
        Ok(())
    }

    fn row(&mut self, cells: &[Value<'_>]) -> Result<Next, SinkError> {
        // The cells must be made; reading them is part of the writer's cost.
        self.0 = self.0.wrapping_add(std::hint::black_box(cells).len() as u64);
        Ok(Next::More)
    }

    fn end(&mut self, _: &Accounting) -> Result<(), SinkError> {
        Ok(())
    }
}

fn rows(n: u32) -> Vec<Socket<'static>> {
    let state = |i: u32| if i % 10 == 0 { State::TIME_WAIT } else { State::ESTABLISHED };
    let peer =
        |i: u32| Addr::V4([if i % 4 == 0 { 192 } else { 10 }, (i >> 12) as u8 & 7, (i >> 6) as u8 & 7, i as u8 & 63]);
    let one = |i: u32| Socket {
        family: 2,
        state: state(i),
        local: Endpoint { addr: Addr::V4([10, 0, 0, 1]), port: 443 },
        peer: Endpoint { addr: peer(i), port: i as u16 | 1 },
        rqueue: i & 0xfff,
        wqueue: Some(0),
        inode: i,
        ..Socket::EMPTY
    };
    (0..n).map(one).collect()
}

fn measure(name: &str, passes: usize, rows: usize, mut pass: impl FnMut() -> u64) {
    let mut best = f64::MAX;
    let mut proof = 0;
    for _ in 0..passes {
        let start = Instant::now();
        proof = pass();
        best = best.min(start.elapsed().as_nanos() as f64 / rows as f64);
    }
    println!("{name:44} {best:7.1} ns/row   {proof:x}");
}

fn measure_plan(name: &str, source: &mut Canned, request: PlanRequest) {
    match Plan::<Sockets>::new(request) {
        Ok(plan) => measure(name, source.passes, source.rows.len() * source.times, || {
            let mut sink = Cells::default();
            let run = plan.run(&mut OneRound::new(source, &Lookups::empty(), &|| false), &mut sink);
            sink.0.wrapping_add(run.map_or(0, |run| run.stats.filtered))
        }),
        Err(error) => println!("{name}: {error}"),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let passes: usize = std::env::args().nth(1).map_or(Ok(300), |n| n.parse())?;
    let mut source = Canned { rows: rows(512), times: 40, passes };
    let count = source.rows.len() * source.times;
    for text in [
        "state = established and peer in 10.0.0.0/8",
        "local_port in (22, 80, 443, 8000-8999) or peer_port < 1024",
        "not (state = listen or peer in (192.168.0.0/16, 172.16.0.0/12))",
    ] {
        let predicate = Predicate::<Sockets>::new(&filter::conjuncts(Schema::from_table::<Sockets>(), text)?)?;
        measure(text, passes, count, || {
            let mut passed = 0;
            source.each(|row| passed += u64::from(predicate.matches(row, &Lookups::empty())));
            passed
        });
    }
    let default = columns::resolve(Schema::from_table::<Sockets>(), None, columns::Base::Default, false)?;
    let nine = columns::resolve(Schema::from_table::<Sockets>(), Some("+inode"), columns::Base::Default, false)?;
    let conjuncts = filter::conjuncts(Schema::from_table::<Sockets>(), "state = established and peer in 10.0.0.0/8")?;
    let request = |columns: &[usize]| PlanRequest { columns: columns.to_vec(), ..PlanRequest::default() };
    measure_plan("nothing but the loop (1 column)", &mut source, request(&default[..1]));
    measure_plan("8 default columns", &mut source, request(&default));
    measure_plan("9 columns", &mut source, request(&nine));
    measure_plan("9 columns, filtered", &mut source, PlanRequest { conjuncts, ..request(&nine) });
    let sort = || SortKey::parse_list("recv_q:desc");
    measure_plan("9 columns, sorted", &mut source, PlanRequest { sort: sort(), ..request(&nine) });
    measure_plan(
        "9 columns, first 10 of sorted",
        &mut source,
        PlanRequest { sort: sort(), limit: Some(10), ..request(&nine) },
    );
    let by = vec!["state".into(), "peer_addr".into()];
    let folds = vec![(Fold::Sum, "recv_q".into())];
    measure_plan("by state, peer_addr with a sum", &mut source, PlanRequest { by, folds, ..PlanRequest::default() });
    Ok(())
}
