//! The language everybody speaks.
//!
//! What a row is, which fields it has, how a value looks, what a filter says, what a run was asked for and what
//! became of every row. Pure: no system call, no file, no output, no dependency. Start reading at [`Table`].
#![forbid(unsafe_code)]

mod account;
mod addr;
mod books;
mod demand;
mod filter;
mod lookup;
mod many;
mod names;
mod owner;
pub mod rows;
mod sink;
mod source;
mod table;
pub mod text;
mod value;

pub use account::{Accounting, Why};
pub use addr::{Addr, Prefix, Scope};
pub use books::Books;
pub use demand::{BackendLacks, Demand, Offer, Push, Via};
pub use filter::{EndpointTest, Expr, Op, Operand, Test};
pub use lookup::{Key, Lookup, LookupId, Lookups};
pub use many::ManyBooks;
pub use names::{Proto, State, Timer};
pub use owner::{Comm, Owner};
pub use sink::{Column, Columns, Kept, Missing, Next, Round, Sink, SinkError};
pub use source::{Again, Each, RowBytes, Rules, Source, SourceError, SourceFault, Stream, Tide, Unchanged};
pub use table::{Field, Get, Show, Table, field_index};
pub use value::{Kind, Value, Words, WordsIter};
