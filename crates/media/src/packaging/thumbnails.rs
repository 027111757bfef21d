//! Thumbnails for players, in the three forms that players know.
//!
//! ```text
//!   master.m3u8      EXT-X-IMAGE-STREAM-INF: the playlist of the images ("HTTP Live Streaming:
//!   thumbnails.m3u8  an image is a segment    image media playlists", version 0.4)
//!   manifest.mpd     a set of images, each a segment        (DASH-IF IOP 4.3, 6.2.6)
//!   thumbnails.vtt   a cue for each thumbnail: its image, and its place there (#xywh=)
//!   thumbnails/K.jpg image K, the same for all
//! ```
//! The lists of images belong to the whole title: those of a part of it would begin in the middle
//! of an image. The cues of a part name the images of the whole.

use super::Packaging;
use super::clip::time;
use super::playlist;
use super::text::{CueClock, FILE_HEAD, write_cue};
use crate::Thumbnails;
use std::sync::Arc;
use units::MediaTime;

impl Packaging {
    /// The HLS playlist of the images with thumbnails; `None` if the presentation has none.
    pub fn thumbnail_playlist(&self, query: &str) -> Option<String> {
        let thumbnails = self.thumbnails()?;
        let (width, height) = thumbnails.size();
        let tiles = format!(
            "RESOLUTION={width}x{height},LAYOUT={LAYOUT},DURATION={}",
            thumbnails.interval().as_secs()
        );
        Some(playlist::images(self.image_lengths(thumbnails), &tiles, query))
    }

    /// An image with thumbnails, as JPEG; `None` if there is no such image.
    pub fn thumbnail_image(&self, number: u32) -> Option<Arc<[u8]>> {
        self.text_line?;
        let thumbnails = self.index.thumbnails.as_ref()?;
        thumbnails.images().get(usize::try_from(number).ok()?).cloned()
    }

    /// The thumbnails as one WebVTT file, whose cues name an image and a rectangle of it; `None`
    /// if the presentation has none. `query`: as for a manifest.
    pub fn thumbnail_cues(&self, query: &str, clock: CueClock) -> Option<String> {
        let thumbnails = self.index.thumbnails.as_ref()?;
        let line = self.cue_line(clock)?;
        let ms = |time: MediaTime| (time.0 + 500_000).div_euclid(1_000_000);
        let (later, interval) = (ms(line.later), ms(time(thumbnails.interval())));
        let to_end = match clock {
            CueClock::Segments => self.duration,
            CueClock::File => self.file_duration(),
        };
        let end = ms(line.end.unwrap_or(time(to_end)));
        let (width, height) = thumbnails.size();
        let mut text = FILE_HEAD.to_owned();
        for number in 0..thumbnails.count() {
            let begins = interval * i64::from(number) + later;
            let (start, stop) = (begins.max(0), (begins + interval).min(end));
            if start >= stop {
                continue;
            }
            let (image, place) = (number / Thumbnails::IN_IMAGE, number % Thumbnails::IN_IMAGE);
            let (column, row) = (place % Thumbnails::COLUMNS, place / Thumbnails::COLUMNS);
            let (x, y) = (column * width, row * height);
            let target = format!("thumbnails/{image}.jpg{query}#xywh={x},{y},{width},{height}");
            write_cue(&mut text, start, stop, &target);
        }
        Some(text)
    }

    /// The thumbnails of the presentation.
    pub(super) fn thumbnails(&self) -> Option<&Thumbnails> {
        self.index.thumbnails.as_ref().filter(|_| self.is_whole)
    }

    /// The bit rate of the images: that of the image with the most bytes for its time.
    pub(super) fn thumbnail_rate(&self, thumbnails: &Thumbnails) -> u64 {
        let bits = thumbnails.images().iter().map(|image| image.len() as u64 * 8 * 1_000_000);
        let rates = bits.zip(self.image_lengths(thumbnails)).map(|(bits, us)| bits.div_ceil(us));
        rates.max().unwrap_or(0)
    }

    /// The time of each image in microseconds: the last one ends with the title.
    fn image_lengths(&self, thumbnails: &Thumbnails) -> impl Iterator<Item = u64> + use<> {
        let of_each = image_seconds(thumbnails) * 1_000_000;
        let end = u64::try_from(self.duration.as_micros()).unwrap_or(u64::MAX);
        let starts = (0..thumbnails.images().len() as u64).map(move |k| k * of_each);
        starts.map(move |start| end.saturating_sub(start).clamp(1, of_each))
    }
}

/// The seconds that the thumbnails of a full image are for.
pub(super) fn image_seconds(thumbnails: &Thumbnails) -> u64 {
    thumbnails.interval().as_secs() * u64::from(Thumbnails::IN_IMAGE)
}

/// Columns and rows of an image.
pub(super) const LAYOUT: &str = "5x5";
