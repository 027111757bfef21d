//! What the core and the opener tell a thread that speaks HTTP, and what becomes of it for the connection
//! that asked.

use super::{CUT_OFF, Worker};
use crate::core::{Event, Notice, Undone};
use crate::engine::RequestId;
use crate::http::answer;
use crate::http::connection::{Asked, Doing};
use crate::http::response::Reply;
use crate::http::transfer::Transfer;
use crate::http::undone;
use crate::wire;
use device::sockets::ConnectionId;
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Worker {
    pub(super) fn notice(&mut self, notice: Notice) {
        match notice {
            Notice::Opened { connection, result } => self.opened(connection, result),
            Notice::Admitted { connection, result } => self.admitted(connection, result),
            Notice::Listed { connection, list } => self.listed(connection, &list),
            Notice::Accepted { connection, request } => {
                if let Some(transfer) = self.transfer(connection) {
                    transfer.accepted(request);
                    self.pump(connection);
                }
            }
            Notice::Deliver { connection, request, read, buffer, range } => {
                if let Some(transfer) = self.transfer(connection) {
                    transfer.deliver(request, read, buffer, range);
                    self.pump(connection);
                }
            }
            Notice::Undone { connection, request, why } => self.undone(connection, request, why),
            Notice::Quit => {}
        }
    }

    fn transfer(&mut self, id: ConnectionId) -> Option<&mut Transfer> {
        match &mut self.connections.get_mut(&id)?.doing {
            Doing::Sending(_, transfer) => Some(transfer),
            _ => None,
        }
    }

    fn opened(
        &mut self,
        id: ConnectionId,
        result: Result<Arc<crate::library::OpenTitle>, crate::library::NotOpened>,
    ) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match std::mem::replace(&mut connection.doing, Doing::Reading) {
            Doing::Waiting(exchange, request, Asked::Opener) => match result {
                Ok(title) => self.answer(id, exchange, request, Some(title)),
                Err(why) => {
                    let name = request.path.get(1).map_or("", String::as_str);
                    let name = name.strip_suffix(".mp4").unwrap_or(name);
                    self.reply(id, exchange, answer::not_opened(name, &why));
                }
            },
            doing => connection.doing = doing,
        }
    }

    fn admitted(
        &mut self,
        id: ConnectionId,
        result: Result<Arc<crate::sessions::Session>, crate::core::NotAdmitted>,
    ) {
        let doing = self.connections.get_mut(&id).map(|c| &mut c.doing);
        let waiting = doing.map(|doing| std::mem::replace(doing, Doing::Reading));
        if let Some(Doing::Waiting(exchange, _, Asked::Core(name, shape))) = waiting {
            return self.reply(id, exchange, answer::admitted(&name, shape, result));
        }
        if let (Some(connection), Some(doing)) = (self.connections.get_mut(&id), waiting) {
            connection.doing = doing;
        }
        // It left before it was let in.
        if let Ok(session) = result {
            self.core.tell(Event::Close { session: session.id });
        }
    }

    fn listed(&mut self, id: ConnectionId, list: &wire::SessionList) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        match std::mem::replace(&mut connection.doing, Doing::Reading) {
            Doing::Waiting(exchange, _, Asked::List) => {
                self.reply(id, exchange, Reply::json(200, list));
            }
            doing => connection.doing = doing,
        }
    }

    /// A request of a transfer is not served: a proper answer if nothing has been sent yet,
    /// otherwise the end of the connection, which is how HTTP/1.1 says that a body is not whole.
    fn undone(&mut self, id: ConnectionId, request: RequestId, why: Undone) {
        let Some(transfer) = self.transfer(id) else { return };
        if !transfer.open_requests().contains(&request) {
            return;
        }
        if transfer.begun() {
            // The viewer still gets what it can be given.
            transfer.stop();
            if transfer.is_cut_off() {
                self.abandon(id, CUT_OFF);
            }
            self.shared.http.broken.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // What was delivered and not sent is answered by this, too.
        for request in transfer.open_requests() {
            self.core.tell(Event::Cancel { request });
        }
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let Doing::Sending(exchange, transfer) =
            std::mem::replace(&mut connection.doing, Doing::Reading)
        {
            connection.next_number = transfer.next_number();
            self.reply(id, exchange, undone::reply(&why));
        }
    }
}
