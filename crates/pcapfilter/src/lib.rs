//! The pcap-filter language, compiled to classic BPF as libpcap compiles it: with the same verdicts and errors.
//!
//! [`compile`] takes the text, the link type and the origin of the packets. The program is for a socket, or for
//! [`run`]. Pure: the caller resolves names ([`NameSource`]), and nothing is opened. Knows no captures, file formats
//! or rows.
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
pub use target::{FilterTarget, PacketOrigin};
