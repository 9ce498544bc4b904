//! The pcap-filter language, compiled to classic BPF as libpcap compiles it: the same verdicts, the same refusals.
//!
//! [`compile`] takes the text, the link type and where packets come from; the program goes to a socket, or to [`run`].
//! Pure: names are asked of the caller ([`NameSource`]), nothing is opened. Knows no capture, no file format, no row.
//!
//! text ─ `lexer` ► tokens ─ `parser` ► leaves and a tree ─ `group` ► sets ─ `generate` ► conditions
//!      ─ `build` ► a graph of tests ─ `optimise` ► a smaller one ─ `emit` ► instructions
#![forbid(unsafe_code)]

mod ast;
mod build;
mod compile;
mod condition;
mod emit;
mod error;
mod facts;
mod fuzz;
mod generate;
mod graph;
mod group;
mod instruction;
mod interpret;
mod lexer;
mod link;
mod names;
mod numbers;
mod optimise;
mod parser;
mod target;
mod value;
mod words;

pub use compile::{EXPRESSION_MAX, Extra, Filter, compile, compile_with};
pub use error::FilterError;
pub use fuzz::fuzz_pcap_filter;
pub use instruction::{INSTRUCTIONS_MAX, Instruction, Program};
pub use interpret::{Metadata, Packet, VlanTag, run};
pub use link::LinkType;
pub use names::{NameFiles, NameSource};
pub use parser::ExtraWord;
pub use target::{FilterTarget, Origin};
