//! A vector that grows without moving its items: it never needs two copies, so the peak memory is its size.

/// Items per chunk: large enough that allocations are rare, small enough that the last, half-empty chunk does not
/// matter.
const CHUNK: usize = 4_096;

/// An append-only list of items in chunks of [`CHUNK`].
pub(crate) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
    len: usize,
}

impl<T> Chunks<T> {
    pub(crate) fn new() -> Chunks<T> {
        Chunks { chunks: Vec::new(), len: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Appends `item` and returns its index.
    pub(crate) fn push(&mut self, item: T) -> u32 {
        let index = self.len;
        match self.chunks.get_mut(index / CHUNK) {
            Some(chunk) => chunk.push(item),
            // The first chunk grows gradually: a table of ten rows stays small.
            None if index == 0 => self.chunks.push(vec![item]),
            None => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(item);
                self.chunks.push(chunk);
            }
        }
        self.len += 1;
        // 2^32 flows of 36 bytes do not fit into memory, and the indexes never come from outside.
        index as u32
    }

    /// Returns the item at an index from [`Chunks::push`].
    #[inline]
    pub(crate) fn get(&self, index: u32) -> &T {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// Returns the item at an index from [`Chunks::push`], mutably.
    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut T {
        &mut self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    /// Removes all items, keeps the first chunk's memory.
    pub(crate) fn clear(&mut self) {
        self.chunks.truncate(1);
        self.chunks.iter_mut().for_each(Vec::clear);
        self.len = 0;
    }
}
