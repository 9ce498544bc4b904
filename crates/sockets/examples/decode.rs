//! Measures the time to decode recorded messages: `decode FILE.nl [rounds]`.
#![forbid(unsafe_code)]

use netlink::Messages;
use record::Proto;
use sockets::InetDecoder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let bytes = std::fs::read(words.next().ok_or("a file of recorded messages is needed")?)?;
    let rounds: u64 = words.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let mut decoder = InetDecoder::new(Proto::Tcp, 1);
    let (mut rows, mut sum) = (0u64, 0u64);
    let start = sys::cost::measure();
    for _ in 0..rounds {
        for message in Messages::new(std::hint::black_box(&bytes)).map_while(Result::ok) {
            if message.is_end() {
                continue;
            }
            // Matches by reference, so that the row is not moved once more.
            match &decoder.decode(message.payload) {
                Ok(row) => sum = sum.wrapping_add(std::hint::black_box(row).cookie),
                Err(error) => return Err((*error).into()),
            }
            rows += 1;
        }
    }
    // CPU time, because other work on the machine must not count.
    let per_row = sys::cost::measure().since(&start).user_us as f64 * 1000.0 / rows as f64;
    println!("{rows} rows, {per_row:.1} ns/row, hash {sum:x}");
    Ok(())
}
