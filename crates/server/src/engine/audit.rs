//! The books against what they stand for: everything booked is added up anew from the streams and
//! sessions, and compared. Slow, and obviously right; tests and the simulator call it often.

use super::Engine;
use super::disks::Disk;
use super::failover::FailoverBooks;
use scheduler::NetworkBooks;

impl Engine {
    pub(super) fn audit_books(&mut self) -> Result<(), String> {
        let mut network = NetworkBooks::default();
        network.advance(self.slot);
        for (number, disk) in self.disks.iter().enumerate() {
            let fresh = self.rebuilt(number, disk, &mut network);
            let of = |disk: &Disk| {
                let books = &disk.dispatcher.books;
                let ahead = books.ahead_of_now().to_vec();
                (ahead, books.overdue(), books.held(), books.reserved(), books.summary())
            };
            if of(disk) != of(&fresh) {
                return Err(format!(
                    "disk {number}: booked {:?}, due {:?}",
                    disk.dispatcher.books, fresh.dispatcher.books
                ));
            }
            if disk.dispatcher.queue().len() != fresh.dispatcher.queue().len() {
                return Err(format!(
                    "disk {number}: queued {:?}, due {:?}",
                    disk.dispatcher.queue(),
                    fresh.dispatcher.queue()
                ));
            }
        }
        if self.network.ahead_of_now() != network.ahead_of_now() {
            return Err(format!("network: booked {:?}, due {network:?}", self.network));
        }
        let mut standby = FailoverBooks::new(self.disks.len(), self.failover.is_enabled());
        standby.advance(self.slot);
        self.streams.values().for_each(|stream| standby.book(stream));
        self.sessions.values().for_each(|s| standby.reserve(s.placement(), s.reserve));
        match self.failover.differs(&mut standby, self.disks.len()) {
            Some(difference) => Err(difference),
            None => self.audit_pins(),
        }
    }

    pub(super) fn nothing_is_booked(&self) -> bool {
        let disks = self.disks.iter().all(|disk| disk.dispatcher.books.is_empty());
        disks && self.network.total() == 0 && self.failover.is_empty()
    }

    fn rebuilt(&self, number: usize, disk: &Disk, network: &mut NetworkBooks) -> Disk {
        let mut fresh = Disk::new(disk.guarantee, disk.memory, disk.slot);
        fresh.dispatcher.advance(self.slot);
        for (id, stream) in self.streams.iter() {
            if usize::from(stream.layout.disk.0) != number {
                continue;
            }
            fresh.book(stream);
            stream.unread().for_each(|piece| network.book(piece));
            stream.held().for_each(|(_, piece)| network.book(piece));
            fresh.dispatcher.enqueue(*id, stream.next_read());
        }
        for session in self.sessions.values() {
            if usize::from(session.layout.disk.0) == number {
                fresh.dispatcher.books.reserve(session.reserve);
            }
        }
        for request in self.requests.values() {
            if let Some(detached) = request.detached.filter(|detached| detached.disk == number) {
                fresh.dispatcher.books.reserve(detached.reserve);
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
        self.requests.audit()?;
        if self.buffers.used() > self.buffers.total() {
            return Err(format!("{} bytes of buffers in use", self.buffers.used()));
        }
        Ok(())
    }
}
