//! A writer of messages that caches their texts.

use super::cache::TextCache;
use crate::row_writer::{RowWriter, Shipped};
use record::{Columns, Lookups, RowCells};

/// A writer of messages that share a text if their rows have the same shape.
pub(crate) struct CachingWriter<T: Shipped> {
    writer: Box<dyn RowWriter<T>>,
    cache: TextCache,
}

impl<T: Shipped> CachingWriter<T> {
    /// Wraps `writer`, whose messages depend on the row and on the cells of these columns.
    pub(crate) fn wrap(writer: Box<dyn RowWriter<T>>, columns: &Columns) -> Box<dyn RowWriter<T>> {
        match TextCache::new::<T>(columns) {
            Some(cache) => Box::new(CachingWriter { writer, cache }),
            None => writer,
        }
    }
}

impl<T: Shipped> RowWriter<T> for CachingWriter<T> {
    fn chooses(&self) -> bool {
        self.writer.chooses()
    }

    fn takes(&self, row: &T::Row<'_>) -> bool {
        self.writer.takes(row)
    }

    fn writes_lines(&self) -> bool {
        self.writer.writes_lines()
    }

    fn file_header(&mut self) -> Vec<u8> {
        self.writer.file_header()
    }

    fn begin_batch(&mut self) {
        self.writer.begin_batch();
    }

    fn write(&mut self, row: &T::Row<'_>, cells: &mut dyn RowCells, lookups: &Lookups<'_>, out: &mut Vec<u8>) {
        let CachingWriter { writer, cache } = self;
        cache.put::<T>(row, cells, 0, out, &mut |row, cells, _, out| writer.write(row, cells, lookups, out));
    }

    fn write_noted(
        &mut self,
        row: &T::Row<'_>,
        cells: &mut dyn RowCells,
        lookups: &Lookups<'_>,
        words: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.writer.write_noted(row, cells, lookups, words, out);
    }
}
