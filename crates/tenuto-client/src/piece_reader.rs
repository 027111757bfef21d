//! The LDUs of the pieces of one track, whatever their form: fragments of MP4, or a transport
//! stream. The first byte of a piece tells them apart. In other pieces none is found.

use crate::fragments::FragmentReader;
use crate::ldus::FoundLdu;
use crate::transport::TransportReader;
use units::Moment;

/// Reads the pieces of one track, one after another.
#[derive(Clone, Debug)]
pub(crate) struct PieceReader {
    /// The form of the present piece, once a byte of it has arrived.
    form: Option<PieceForm>,
    fragments: FragmentReader,
    transport: TransportReader,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceForm {
    Fragments,
    Transport,
}

impl PieceReader {
    /// A reader that passes on the bytes of LDUs, or only their places and times.
    pub(crate) fn new(with_bytes: bool) -> Self {
        let fragments = FragmentReader::new(with_bytes);
        Self { form: None, fragments, transport: TransportReader::new(with_bytes) }
    }

    /// Takes the track's header (`ftyp` and `moov`).
    pub(crate) fn header(&mut self, init: &[u8]) {
        self.fragments.header(init);
    }

    /// A piece begins.
    pub(crate) fn begin(&mut self) {
        self.form = None;
        self.fragments.begin();
        self.transport.begin();
    }

    /// Takes the next bytes of the piece, and passes on the LDUs that they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Moment, sink: &mut dyn FnMut(FoundLdu)) {
        let Some(first) = bytes.first() else { return };
        let form = match first {
            // The sync byte; a box begins with its length, and none is so long.
            0x47 => PieceForm::Transport,
            _ => PieceForm::Fragments,
        };
        match self.form.get_or_insert(form) {
            PieceForm::Transport => self.transport.push(bytes, now, sink),
            PieceForm::Fragments => self.fragments.push(bytes, &mut |place, bytes| {
                sink(FoundLdu { stream: 0, place, bytes: bytes.to_vec(), at: now });
            }),
        }
    }

    /// The piece is complete.
    pub(crate) fn finish(&mut self, sink: &mut dyn FnMut(FoundLdu)) {
        if self.form == Some(PieceForm::Transport) {
            self.transport.finish(sink);
        }
    }
}
