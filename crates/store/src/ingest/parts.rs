//! Records what comes out of one FFmpeg process as one title, or as several that follow one
//! another.
//!
//! ```text
//!   payload of a track ──▶ present part ──cut──▶ next part       both are committed meanwhile
//!   all tracks are cut ──▶ the present part becomes a title
//! ```

use super::track_marks::TrackMarks;
use crate::{JobProgress, StoreError, TitleRecord, TitleRecorder};
use media::{FragmentReader, FragmentSink, IndexPart, TrackDescription};
use std::time::Duration;

/// Decides which titles are made of an input.
pub(super) trait PartKeeper<'a> {
    /// Begins the next title.
    fn begin(&mut self, tracks: &[TrackDescription]) -> Result<TitleRecorder<'a>, StoreError>;

    /// Makes a title of a recording; `None` if it has nothing.
    fn end(&mut self, recorder: TitleRecorder<'a>) -> Result<Option<TitleRecord>, StoreError>;

    /// Makes room after this error; false if there is nothing that can be removed.
    fn make_room(&mut self, error: &StoreError) -> bool;

    /// Is told of progress, also while nothing comes.
    fn tell(&mut self, progress: JobProgress);

    /// Is told which streams of the input are not recorded, when the others begin.
    fn leave_out(&mut self, streams: Vec<String>);

    /// Whether the input is opened again when this connection to it has ended.
    fn opens_again(&self) -> bool;

    /// The play-out time of a part; `None`: all is one title.
    fn part_length(&self) -> Option<Duration>;
}

/// Writes a stream into the titles of a [`PartKeeper`].
pub(super) struct PartsSink<'a, 'k> {
    pub(super) keeper: &'k mut dyn PartKeeper<'a>,
    /// What each track has beside what its header says.
    marks: Vec<TrackMarks>,
    present: Option<TitleRecorder<'a>>,
    next: Option<TitleRecorder<'a>>,
    /// Whether each track has come to the next part.
    is_cut: Vec<bool>,
    /// The bytes of the parts that have ended.
    ended: u64,
    has_begun: bool,
}

impl<'a, 'k> PartsSink<'a, 'k> {
    pub(super) fn new(keeper: &'k mut dyn PartKeeper<'a>, marks: Vec<TrackMarks>) -> Self {
        Self {
            keeper,
            marks,
            present: None,
            next: None,
            is_cut: Vec::new(),
            ended: 0,
            has_begun: false,
        }
    }

    fn begin(&mut self, tracks: &[TrackDescription]) -> Result<TitleRecorder<'a>, StoreError> {
        let mut tracks = tracks.to_vec();
        for (marks, track) in self.marks.iter().zip(&mut tracks) {
            marks.complete(track);
        }
        self.keeper.begin(&tracks)
    }

    /// Whether the tracks are known, and their recording has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// The bytes of all parts so far.
    pub(super) fn bytes(&self) -> u64 {
        let open = self.present.iter().chain(&self.next);
        self.ended + open.map(TitleRecorder::bytes).sum::<u64>()
    }

    /// Makes durable what has arrived.
    pub(super) fn commit(&mut self, reader: &FragmentReader) -> Result<(), StoreError> {
        for recorder in self.present.iter_mut().chain(&mut self.next) {
            recorder.describe(&mut |track, description| reader.complete(track, description));
        }
        self.commit_parts(&mut |is_next, track, from, arrived| match is_next {
            false => reader.part(track, from, arrived),
            true => reader.next_part(track, from, arrived),
        })
    }

    /// [`PartsSink::commit`] of what `part` says of the present part and of the next one.
    pub(super) fn commit_parts(
        &mut self,
        part: &mut dyn FnMut(bool, usize, usize, u64) -> IndexPart,
    ) -> Result<(), StoreError> {
        for (recorder, is_next) in [(&mut self.present, false), (&mut self.next, true)] {
            let Some(recorder) = recorder else { continue };
            let mut part = |track, from, arrived| part(is_next, track, from, arrived);
            while let Err(error) = recorder.commit(&mut part) {
                if !self.keeper.make_room(&error) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Makes a title of the present part, which is whole.
    pub(super) fn end_part(&mut self, reader: &FragmentReader) -> Result<(), StoreError> {
        self.commit(reader)?;
        self.go_on()
    }

    /// Makes a title of the present part, and the next one the present one.
    pub(super) fn go_on(&mut self) -> Result<(), StoreError> {
        let ended = self.end_present();
        self.present = self.next.take();
        self.is_cut.fill(false);
        ended
    }

    /// Makes titles of what was committed.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        let present = self.end_present();
        self.present = self.next.take();
        let next = self.end_present();
        present.and(next)
    }

    fn end_present(&mut self) -> Result<(), StoreError> {
        let Some(recorder) = self.present.take() else { return Ok(()) };
        self.ended += recorder.bytes();
        self.keeper.end(recorder).map(|_| ())
    }
}

impl FragmentSink for PartsSink<'_, '_> {
    type Error = StoreError;

    fn tracks(&mut self, tracks: &[TrackDescription]) -> Result<(), StoreError> {
        self.is_cut = vec![false; tracks.len()];
        self.present = Some(self.begin(tracks)?);
        self.has_begun = true;
        Ok(())
    }

    fn payload(&mut self, track: usize, mut bytes: &[u8]) -> Result<(), StoreError> {
        let recorder = if self.is_cut[track] { &mut self.next } else { &mut self.present };
        let recorder = recorder.as_mut().expect("the tracks come first");
        let number = u16::try_from(track).expect("tracks are few");
        while let Err(error) = recorder.write_from(number, &mut bytes) {
            if !self.keeper.make_room(&error) {
                return Err(error);
            }
        }
        Ok(())
    }

    fn cut(&mut self, track: usize, tracks: &[TrackDescription]) -> Result<(), StoreError> {
        if self.next.is_none() {
            self.next = Some(self.begin(tracks)?);
        }
        self.is_cut[track] = true;
        Ok(())
    }
}
