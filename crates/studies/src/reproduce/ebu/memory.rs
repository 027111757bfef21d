//! Memory of a node: a FIFO cache of file pages, and a buffer for writes on their way to the disks.

use std::collections::VecDeque;
use units::{Moment, grown, index};

/// Pages of files.
#[derive(Debug, Default)]
pub(super) struct Pages {
    most: usize,
    /// Whether each page of each file is there. Looked up for every block: a table by number costs
    /// less than a hash.
    there: Vec<Vec<bool>>,
    order: VecDeque<(u32, usize)>,
}

/// The space for writes that wait for the disks.
#[derive(Debug)]
pub(super) struct WriteBuffer {
    free: u64,
    /// What leaves, and when.
    leaving: VecDeque<(Moment, u64)>,
}

impl Pages {
    pub(super) fn new(bytes: u64) -> Self {
        let most = usize::try_from(bytes / PAGE).unwrap_or(usize::MAX);
        Self { most, ..Self::default() }
    }

    pub(super) fn holds(&self, file: u32, from: u64, end: u64) -> bool {
        let there = self.there.get(index(file)).and_then(|file| file.get(pages(from, end)));
        there.is_some_and(|there| there.iter().all(|there| *there))
    }

    pub(super) fn keep(&mut self, file: u32, from: u64, end: u64) {
        if self.most == 0 {
            return;
        }
        let of = grown(&mut self.there, index(file));
        for page in pages(from, end) {
            // A page that is read again keeps its place in the order: the cache is FIFO, not LRU.
            if !std::mem::replace(grown(of, page), true) {
                self.order.push_back((file, page));
            }
        }
        while self.order.len() > self.most {
            let (file, page) = self.order.pop_front().expect("there are some");
            self.there[index(file)][page] = false;
        }
    }
}

impl WriteBuffer {
    pub(super) fn new(bytes: u64) -> Self {
        Self { free: bytes, leaving: VecDeque::new() }
    }

    /// From when on there is room for so many bytes more, which leave at `gone`.
    pub(super) fn take(&mut self, now: Moment, bytes: u64, gone: Moment) -> Moment {
        let mut from = now;
        while let Some(&(at, freed)) = self.leaving.front()
            && (at <= now || self.free < bytes)
        {
            self.leaving.pop_front();
            self.free += freed;
            from = from.max(at);
        }
        // A write larger than the buffer takes all of it.
        self.free = self.free.saturating_sub(bytes);
        // In order of time: a later write may leave the memory earlier.
        let place = self.leaving.partition_point(|(at, _)| *at <= gone);
        self.leaving.insert(place, (gone, bytes));
        from
    }
}

fn pages(from: u64, end: u64) -> std::ops::Range<usize> {
    let number = |page| usize::try_from(page).expect("a file has thousands of pages");
    number(from / PAGE)..number(end.div_ceil(PAGE))
}

/// What both storages of the paper moved at once (section 5.4).
pub(super) const PAGE: u64 = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_pages_make_room_for_the_last() {
        let mut pages = Pages::new(3 * PAGE);
        pages.keep(0, 0, 2 * PAGE);
        pages.keep(1, 10, 20);
        assert!(pages.holds(0, 5, 2 * PAGE) && pages.holds(1, 0, PAGE));
        pages.keep(2, 0, 1);
        assert!(!pages.holds(0, 0, 1) && pages.holds(0, PAGE, PAGE + 1) && pages.holds(2, 0, 1));
        let mut none = Pages::new(0);
        none.keep(0, 0, PAGE);
        assert!(!none.holds(0, 0, 1));
    }

    #[test]
    fn a_write_waits_until_so_much_has_left() {
        let mut room = WriteBuffer::new(100);
        assert_eq!(room.take(Moment(0), 60, Moment(50)), Moment(0));
        assert_eq!(room.take(Moment(1), 40, Moment(30)), Moment(1));
        assert_eq!(room.take(Moment(2), 30, Moment(90)), Moment(30));
        assert_eq!(room.take(Moment(60), 70, Moment(99)), Moment(60));
    }
}
