//! The books against what they stand for: everything booked is added up anew from the streams and
//! sessions, and compared. Slow, and obviously right; tests and the simulator call it often.

use super::Engine;
use super::disks::Disk;
use super::standby::Standby;
use scheduler::NetworkBooks;

impl Engine {
    /// Checks that books, buffers and queues agree with the sessions; says what does not.
    pub fn audit(&mut self) -> Result<(), String> {
        let mut network = NetworkBooks::default();
        network.advance(self.slot);
        for (number, disk) in self.disks.iter().enumerate() {
            let fresh = self.rebuilt(number, disk, &mut network);
            let of = |disk: &Disk| {
                let books = &disk.books;
                let ahead = books.ahead_of_now().to_vec();
                (ahead, books.overdue(), books.held(), books.reserved(), books.summary())
            };
            if of(disk) != of(&fresh) {
                return Err(format!(
                    "disk {number}: booked {:?}, due {:?}",
                    disk.books, fresh.books
                ));
            }
            if disk.queue.len() != fresh.queue.len() {
                return Err(format!(
                    "disk {number}: queued {:?}, due {:?}",
                    disk.queue, fresh.queue
                ));
            }
        }
        if self.network.ahead_of_now() != network.ahead_of_now() {
            return Err(format!("network: booked {:?}, due {network:?}", self.network));
        }
        let mut standby = Standby::new(self.disks.len(), self.standby.is_wanted());
        standby.advance(self.slot);
        self.streams.values().for_each(|stream| standby.book(stream));
        self.sessions.values().for_each(|s| standby.reserve(s.seat(), s.reserve));
        match self.standby.differs(&mut standby, self.disks.len()) {
            Some(difference) => Err(difference),
            None => self.audit_pins(),
        }
    }

    /// Whether nothing is booked anywhere.
    pub fn is_empty(&self) -> bool {
        let disks = self.disks.iter().all(|disk| disk.books.is_empty());
        disks && self.network.total() == 0 && self.standby.is_empty()
    }

    fn rebuilt(&self, number: usize, disk: &Disk, network: &mut NetworkBooks) -> Disk {
        let mut fresh = Disk::new(disk.guarantee, disk.memory, disk.slot);
        fresh.books.advance(self.slot);
        for (id, stream) in &self.streams {
            if usize::from(stream.layout.disk.0) != number {
                continue;
            }
            fresh.book(stream);
            stream.unread().for_each(|piece| network.book(piece));
            stream.held().for_each(|(_, piece)| network.book(piece));
            if let Some(next) = stream.next_read() {
                fresh.queue.insert(next.due, *id);
            }
        }
        for session in self.sessions.values() {
            if usize::from(session.layout.disk.0) == number {
                fresh.books.reserve(session.reserve);
            }
        }
        for request in self.requests.values() {
            if let Some(orphan) = request.orphan.filter(|orphan| orphan.disk == number) {
                fresh.books.reserve(orphan.reserve);
            }
        }
        fresh
    }

    fn audit_pins(&self) -> Result<(), String> {
        let holds: usize = self.streams.values().map(|stream| stream.held().count()).sum();
        let unsent: usize = self.requests.values().map(|request| request.unsent.len()).sum();
        let pins = self.buffers.pins();
        if pins != holds + unsent {
            return Err(format!("{pins} pins for {holds} held and {unsent} unsent pieces"));
        }
        let awaiting = self.requests.values().filter(|request| request.awaits.is_some()).count();
        if awaiting != self.awaited.len() {
            return Err(format!("{awaiting} requests wait for {:?}", self.awaited));
        }
        if self.buffers.used() > self.buffers.total() {
            return Err(format!("{} bytes of buffers in use", self.buffers.used()));
        }
        Ok(())
    }
}
