//! The books of one node at flow level: streams as rates. What a node is guaranteed to hold, what
//! it has reserved, and what it answers to a request.
//!
//! ```text
//!   disk 0   |########reserved########|......free......|kept|
//!   disk 1   |####reserved####|..........free...........|kept|    kept: for viewers whose node
//!   network  |#############reserved#############|.free..|kept|          is lost, not for new ones
//!   memory   |######reserved######|.............free.........|
//! ```
//!
//! The node alone writes these books, so there is no second writer that could book twice. The books
//! count rates only: a node's engine decides with the times of each read, and what it still holds
//! is the digest that [`NodeBooks::shares`] shows for these.

use crate::names::NodeDisk;
use crate::records::CapacityShare;
use units::{BitRate, ByteCount};

/// What one stream needs for as long as it is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamNeed {
    /// Rate at which its title's disk is read.
    pub disk: BitRate,
    /// Rate at which it is sent.
    pub network: BitRate,
    /// Buffers.
    pub memory: ByteCount,
}

/// Who asks: a new viewer leaves free what is kept for viewers whose node is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionClass {
    /// A viewer who begins.
    New,
    /// A viewer who was admitted, and whose node or copy is lost or makes room.
    Again,
}

/// One disk in the books of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BooksDisk {
    /// The rate of streams that it is guaranteed to hold; zero for a lost disk.
    pub guaranteed: BitRate,
    /// The rate that is reserved.
    pub reserved: BitRate,
}

/// The answer of the books to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BooksAnswer {
    /// The stream is reserved.
    Reserved,
    /// Nothing is reserved, because there is not room for it.
    Full,
    /// The node has no such disk.
    NoDisk,
}

/// What one node holds and has reserved.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeBooks {
    disks: Vec<BooksDisk>,
    network: CapacityShare,
    memory: CapacityShare,
    kept: f64,
}

impl NodeBooks {
    /// Empty books. `kept` is the part of each disk and of the network, from 0 to 1, that new
    /// viewers leave free.
    pub fn new(
        disks: impl IntoIterator<Item = BitRate>,
        network: BitRate,
        memory: ByteCount,
        kept: f64,
    ) -> Self {
        let disk = |guaranteed| BooksDisk { guaranteed, reserved: BitRate(0) };
        Self {
            disks: disks.into_iter().map(disk).collect(),
            network: CapacityShare::all_free(network.0),
            memory: CapacityShare::all_free(memory.0),
            kept: if kept.is_finite() { kept.clamp(0.0, 1.0) } else { 0.0 },
        }
    }

    /// Reserves a stream, or changes nothing.
    pub fn reserve(
        &mut self,
        disk: NodeDisk,
        need: StreamNeed,
        class: AdmissionClass,
    ) -> BooksAnswer {
        let kept = self.kept;
        let Some(books) = self.disks.get_mut(usize::from(disk.0)) else {
            return BooksAnswer::NoDisk;
        };
        let kept = |guaranteed| match class {
            AdmissionClass::New => kept_of(guaranteed, kept),
            AdmissionClass::Again => 0,
        };
        let reserved = books.reserved.0.saturating_add(need.disk.0);
        let network = need.network.0.saturating_add(kept(self.network.guaranteed));
        let fits = reserved <= books.guaranteed.0 - kept(books.guaranteed.0)
            && network <= self.network.free
            && need.memory.0 <= self.memory.free;
        if !fits {
            return BooksAnswer::Full;
        }
        books.reserved = BitRate(reserved);
        self.network.free -= need.network.0;
        self.memory.free -= need.memory.0;
        BooksAnswer::Reserved
    }

    /// Gives back what a stream had reserved.
    pub fn release(&mut self, disk: NodeDisk, need: StreamNeed) {
        let books = self.disks.get_mut(usize::from(disk.0)).expect("the disk of a reserved stream");
        assert!(books.reserved >= need.disk, "more is given back than was reserved");
        books.reserved.0 -= need.disk.0;
        self.network.give_back(need.network.0);
        self.memory.give_back(need.memory.0);
    }

    /// The disks.
    pub fn disks(&self) -> &[BooksDisk] {
        &self.disks
    }

    /// The shares that the node's digest shows: of each disk, of the network and of memory.
    pub fn shares(&self) -> (impl Iterator<Item = CapacityShare>, CapacityShare, CapacityShare) {
        let share = |disk: &BooksDisk| CapacityShare {
            guaranteed: disk.guaranteed.0,
            free: disk.guaranteed.0.saturating_sub(disk.reserved.0),
        };
        (self.disks.iter().map(share), self.network, self.memory)
    }
}

/// What new viewers leave free of a disk or a network that guarantees so much, if they leave this
/// part of it.
#[inline]
pub fn kept_of(guaranteed: u64, kept: f64) -> u64 {
    if kept == 0.0 { 0 } else { units::rounded(units::float(guaranteed) * kept).min(guaranteed) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AdmissionClass::{Again, New};
    use BooksAnswer::{Full, NoDisk, Reserved};

    const NEED: StreamNeed =
        StreamNeed { disk: BitRate(5), network: BitRate(5), memory: ByteCount(1) };

    #[test]
    fn a_disk_holds_its_guarantee_and_new_viewers_less() {
        let mut books = NodeBooks::new([BitRate(20), BitRate(20)], BitRate(30), ByteCount(9), 0.25);
        let steps = [(0, New, Reserved), (0, New, Reserved), (0, New, Reserved), (0, New, Full)];
        for (disk, class, answer) in steps {
            assert_eq!(books.reserve(NodeDisk(disk), NEED, class), answer);
        }
        assert_eq!(books.reserve(NodeDisk(0), NEED, Again), Reserved);
        assert_eq!(books.reserve(NodeDisk(0), NEED, Again), Full);
        assert_eq!(books.reserve(NodeDisk(2), NEED, Again), NoDisk);
        assert_eq!(books.reserve(NodeDisk(1), NEED, New), Full, "8 of the network's 30 are kept");
        assert_eq!(books.reserve(NodeDisk(1), NEED, Again), Reserved);
        assert_eq!(books.reserve(NodeDisk(1), NEED, Again), Reserved);
        assert_eq!(books.reserve(NodeDisk(1), NEED, Again), Full, "the network's 30 are full");
        books.release(NodeDisk(0), NEED);
        assert_eq!(books.reserve(NodeDisk(1), NEED, Again), Reserved);
        let (disks, network, memory) = books.shares();
        assert_eq!(disks.map(|disk| disk.free).collect::<Vec<_>>(), [5, 5]);
        assert_eq!((network.free, memory.free), (0, 3));
    }
}
