//! A list that grows at its end, and whose copies share what is full.
//!
//! ```text
//!   list    │ block │ block │ block │ last  │        BLOCK values in each block
//!   a copy  │   ↑   │   ↑   │   ↑   │ last' │        only the last values are copied
//! ```
//! The index of a recording is copied at each look at it: with this list a copy costs a reference
//! for each block and the values of the last one, however long the recording is.

use std::fmt;
use std::ops::{Index, Range};
use std::sync::Arc;

/// A list of values in shared blocks of `BLOCK`, a power of two.
#[derive(Clone, PartialEq, Eq)]
pub struct SharedList<T, const BLOCK: usize> {
    full: Vec<Arc<[T]>>,
    /// The values behind the full blocks: at least one, unless the list is empty, and at most a
    /// block, so that the last value can be changed.
    last: Vec<T>,
}

impl<T: Clone, const BLOCK: usize> SharedList<T, BLOCK> {
    /// Appends a value.
    pub fn push(&mut self, value: T) {
        if self.last.len() == BLOCK {
            self.full.push(Arc::from(std::mem::take(&mut self.last)));
        }
        self.last.push(value);
    }

    /// The last value, to be changed.
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.last.last_mut()
    }

    /// The first `count` values, which are all if there are not so many.
    #[must_use]
    pub fn prefix(&self, count: usize) -> Self {
        if count >= self.len() {
            return self.clone();
        }
        let blocks = count.saturating_sub(1) / BLOCK;
        let rest = count - blocks * BLOCK;
        let block = self.full.get(blocks).map_or(&self.last[..], |block| block);
        Self { full: self.full[..blocks].to_vec(), last: block[..rest].to_vec() }
    }
}

impl<T, const BLOCK: usize> SharedList<T, BLOCK> {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.full.len() * BLOCK + self.last.len()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// The last value.
    pub fn last(&self) -> Option<&T> {
        self.last.last()
    }

    /// The first value.
    pub fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// A value; `None` beyond the end.
    pub fn get(&self, i: usize) -> Option<&T> {
        self.block(i / BLOCK)?.get(i % BLOCK)
    }

    /// All values in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        self.range(0..self.len())
    }

    /// A range of values in order. Panics beyond the end, like a slice.
    pub fn range(
        &self,
        values: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator + Clone {
        assert!(values.end <= self.len(), "{values:?} of {} values", self.len());
        values.map(|i| &self[i])
    }

    /// The number of values at the beginning for which `is_before` is true; it is false for all
    /// behind them.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let is_whole = |block: &Arc<[T]>| block.last().is_some_and(&is_before);
        let blocks = self.full.partition_point(is_whole);
        let block = self.block(blocks).unwrap_or_default();
        blocks * BLOCK + block.partition_point(is_before)
    }

    /// The values that a copy does not share.
    pub fn unshared(&self) -> usize {
        self.last.len()
    }

    fn block(&self, number: usize) -> Option<&[T]> {
        match self.full.get(number) {
            Some(block) => Some(block),
            None => (number == self.full.len()).then_some(&self.last[..]),
        }
    }
}

impl<T, const BLOCK: usize> Default for SharedList<T, BLOCK> {
    fn default() -> Self {
        Self { full: Vec::new(), last: Vec::new() }
    }
}

impl<T, const BLOCK: usize> Index<usize> for SharedList<T, BLOCK> {
    type Output = T;

    fn index(&self, i: usize) -> &T {
        match self.full.get(i / BLOCK) {
            Some(block) => &block[i % BLOCK],
            None => &self.last[i - self.full.len() * BLOCK],
        }
    }
}

impl<T: Clone, const BLOCK: usize> Extend<T> for SharedList<T, BLOCK> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        values.into_iter().for_each(|value| self.push(value));
    }
}

impl<T: Clone, const BLOCK: usize> FromIterator<T> for SharedList<T, BLOCK> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut list = Self::default();
        list.extend(values);
        list
    }
}

impl<T: Clone, const BLOCK: usize> From<Vec<T>> for SharedList<T, BLOCK> {
    fn from(values: Vec<T>) -> Self {
        values.into_iter().collect()
    }
}

impl<T: fmt::Debug, const BLOCK: usize> fmt::Debug for SharedList<T, BLOCK> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_a_vector_whose_full_blocks_are_shared() {
        for count in 0..30 {
            let values: Vec<u32> = (0..count).collect();
            let mut list: SharedList<u32, 4> = values.clone().into();
            assert!(list.iter().eq(&values) && list.len() == values.len());
            assert_eq!((list.first(), list.last()), (values.first(), values.last()));
            for at in 0..=values.len() + 1 {
                assert_eq!(list.get(at), values.get(at));
                let prefix = list.prefix(at);
                let wanted = &values[..at.min(values.len())];
                assert_eq!(prefix, wanted.to_vec().into(), "{at} of {count}");
                assert!(prefix.unshared() <= 4 && prefix.is_empty() == wanted.is_empty());
                let shared = prefix.full.iter().zip(&list.full);
                assert!(shared.fold(true, |all, (a, b)| all && Arc::ptr_eq(a, b)));
                assert_eq!(list.partition_point(|it| (*it as usize) < at), at.min(values.len()));
                if at <= values.len() {
                    assert!(list.range(at..values.len()).eq(&values[at..]));
                }
            }
            // A copy keeps its last value.
            let copy = list.clone();
            list.last_mut().into_iter().for_each(|last| *last = 99);
            assert!(copy.iter().eq(&values));
        }
    }
}
