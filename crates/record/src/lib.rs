//! The types that all crates share.
//!
//! Defines rows, their fields, cell values, filters, the demand of a run, and the accounting of every row. Pure: no
//! system call, no file, no output, no dependency. Start reading at [`Table`].
#![forbid(unsafe_code)]

mod account;
mod addr;
mod annotate;
mod demand;
mod far_time;
mod filter;
pub mod hash;
mod kernel_words;
mod link_addr;
mod lookup;
mod merged_stats;
mod misses;
mod named_enum;
mod names;
mod nested;
mod owner;
mod row_cells;
mod row_shape;
mod row_stats;
pub mod rows;
mod scan_through;
mod schema;
mod sink;
mod source;
mod table;
pub mod text;
mod value;
mod visitor;

pub use account::{Accounting, MissingReason};
pub use addr::{Addr, Prefix, Scope};
pub use annotate::{Annotate, Annotated, annotated};
pub use demand::{BackendLacks, Demand, FilterPushdown, Offer, Via};
pub use far_time::FarTime;
pub use filter::{EndpointTest, Expr, Op, Operand, Test};
pub use link_addr::LinkAddr;
pub use lookup::{Key, Lookup, LookupId, Lookups};
pub use merged_stats::MergedStats;
pub use misses::{Misses, Reason, Reasons};
pub use names::{Proto, State, Timer};
pub use nested::{OwnedList, OwnedObject, OwnedValue, ToValue};
pub use owner::{Comm, HoldingKind, Owner};
pub use row_cells::RowCells;
pub use row_shape::{
    MESSAGE, NANOS, NUMBERS, NumberKind, RowShape, ShapeColumn, V6_ADDRESSES, V6_WORDS, put_v6_at, v6_at, v6_index,
};
pub use row_stats::RowStats;
pub use scan_through::scan_through;
pub use schema::{FieldInfo, Schema};
pub use sink::{Column, Columns, Hole, Next, Round, Sink, SinkError};
pub use source::{
    CachedRow, Each, RowBytes, RowCache, Rules, Scan, Source, SourceError, SourceFault, Stream, StreamState, full_scan,
};
pub use table::{Field, Get, Link, RowLink, Show, Table, concat_fields, field_index};
pub use value::{Kind, List, Member, Object, Value, Words, WordsIter};
pub use visitor::RowVisitor;
