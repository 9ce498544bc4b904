//! Counters of published ports, which show whether packets move in both directions.

use record::text;

/// The counters of a published port.
#[derive(Debug, PartialEq, Eq)]
pub struct Hits {
    /// The port, such as `tcp_8080`.
    pub port: String,
    /// Packets and bytes to the backend.
    pub inward: [u64; 2],
    /// Packets and bytes of the replies.
    pub outward: [u64; 2],
}

impl Hits {
    /// True if packets moved in both directions.
    pub fn both(&self) -> bool {
        self.inward[0] > 0 && self.outward[0] > 0
    }

    /// True if packets moved in one direction only.
    pub fn one_way(&self) -> bool {
        (self.inward[0] > 0) != (self.outward[0] > 0)
    }

    /// Returns both counts as text.
    pub fn in_words(&self) -> String {
        format!("{}: {} packets to the backend, {} answers", self.port, self.inward[0], self.outward[0])
    }

    /// Returns the increase since `before`. Counters that were reset count from 0.
    pub fn since(self, before: &[Hits]) -> Hits {
        let Some(old) = before.iter().find(|old| old.port == self.port) else { return self };
        let since = |now: [u64; 2], old: [u64; 2]| {
            if now[0] < old[0] { now } else { [now[0] - old[0], now[1].saturating_sub(old[1])] }
        };
        Hits { inward: since(self.inward, old.inward), outward: since(self.outward, old.outward), ..self }
    }
}

/// Parses the output of `nft list counters`: `counter NAME {`, followed by `packets N bytes N`.
pub fn parse_hits(listed: &str) -> Vec<Hits> {
    let mut hits: Vec<Hits> = Vec::new();
    let mut name = "";
    for line in listed.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["counter", counter, "{"] => name = counter,
            ["packets", packets, "bytes", bytes, ..] => {
                let Some((port, way)) = name.rsplit_once('_') else { continue };
                let counted = [packets.parse().unwrap_or(0), bytes.parse().unwrap_or(0)];
                let at = hits.iter().position(|hits| hits.port == port).unwrap_or_else(|| {
                    hits.push(Hits { port: port.to_owned(), inward: [0; 2], outward: [0; 2] });
                    hits.len() - 1
                });
                let Some(hits) = hits.get_mut(at) else { continue };
                if way == "in" { hits.inward = counted } else { hits.outward = counted }
            }
            _ => {}
        }
    }
    hits
}

/// Renders the counts as tab-separated text, or as JSON lines.
pub fn render_hits(hits: &[Hits], json: bool) -> String {
    let mut out = String::new();
    if !json {
        out.push_str("port\tpackets_in\tbytes_in\tpackets_out\tbytes_out\tboth\n");
    }
    for Hits { port, inward: [packets_in, bytes_in], outward: [packets_out, bytes_out] } in hits {
        let both = *packets_in > 0 && *packets_out > 0;
        let mut shown = Vec::new();
        text::put_json(&mut shown, port.as_bytes());
        let port = String::from_utf8_lossy(&shown);
        out.push_str(&if json {
            format!(
                "{{\"port\":\"{port}\",\"packets_in\":{packets_in},\"bytes_in\":{bytes_in},\
                 \"packets_out\":{packets_out},\"bytes_out\":{bytes_out},\"both\":{both}}}\n"
            )
        } else {
            format!("{port}\t{packets_in}\t{bytes_in}\t{packets_out}\t{bytes_out}\t{both}\n")
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
table inet netwren_stateless {
	counter tcp_8080_in {
		packets 12 bytes 840
	}
	counter udp_53_1_out {
		packets 7 bytes 500
	}
	counter tcp_8080_out {
		packets 9 bytes 700
	}
}
";

    #[test]
    fn counters_of_a_port_belong_together() {
        let hits = parse_hits(LISTED);
        assert_eq!(
            hits,
            [
                Hits { port: "tcp_8080".into(), inward: [12, 840], outward: [9, 700] },
                Hits { port: "udp_53_1".into(), inward: [0, 0], outward: [7, 500] },
            ]
        );
        assert!(hits[0].both() && !hits[1].both());
        assert_eq!(
            render_hits(&hits[..1], true),
            "{\"port\":\"tcp_8080\",\"packets_in\":12,\"bytes_in\":840,\"packets_out\":9,\"bytes_out\":700,\
             \"both\":true}\n"
        );
        assert!(parse_hits("counter\ncounter {\npackets x bytes y\n").is_empty());
    }
}
