//! Netlink messages: headers, attributes, requests, the dump state machine. Knows no family except the generic netlink
//! family that lists the others.
//!
//! Input is a stream of receive buffers from [`sys::Host`], live or replayed; output are message payloads and
//! attributes that borrow the buffer. The caller interprets the payloads. Start reading at [`dump()`].
#![forbid(unsafe_code)]

mod attr;
mod blocks;
mod conversation;
pub mod datagrams;
mod decode;
mod dump;
mod error;
mod extack;
pub mod generic;
mod message;
pub mod prefix;
mod request;
mod row_block;

pub use attr::{Attr, AttrError, Attrs, fuzz_attrs};
pub use blocks::SocketBlocks;
pub use conversation::Conversation;
pub use decode::DecodeError;
pub use dump::{AnswerMessage, DumpEnd, Query, dump, exchange, fuzz_dump};
pub use error::{DumpError, is_or_are};
pub use message::{Message, MessageError, Messages};
pub use request::Request;
pub use row_block::{BlockHeader, BlockRows, PartOffsets};
