//! The extended attributes of the files of a mounted store: what a title is, and the rate that is
//! reserved for a file.

use super::{FilePlace, FsResult, GrowingFile, StoreFiles};
use crate::reserved::{IfReserved, NotChanged};
use fuser::Errno;
use media::{TitleIndex, TitleKind};
use store::{ReserveError, ReservedRate, TitleRecord};
use units::{BitRate, float};

impl StoreFiles {
    /// The value of an extended attribute of a file; `None` if it has none of this name.
    pub(crate) fn attribute(&self, path: &str, name: &str) -> FsResult<Option<String>> {
        let title = match self.place(path)? {
            FilePlace::Title(title) => title,
            FilePlace::Growing(file) => return self.growing_attribute(&file, name),
            _ => return Ok(None),
        };
        let seconds = title.duration.as_secs_f64();
        let is_media = title.kind == TitleKind::Media;
        Ok(match name.strip_prefix(ATTRIBUTES) {
            Some("title") => Some(title.name),
            Some("id") => Some(title.id.0.to_string()),
            Some("duration") if is_media => Some(format!("{seconds:.3}")),
            Some("rate") => self.reservations.rate(title.id).map(|rate| rate.to_string()),
            Some("mean_rate") if is_media && seconds > 0.0 => {
                Some(format!("{:.0}", float(title.bytes) * 8.0 / seconds))
            }
            Some("codecs") if is_media => Some(codecs(self.title_file(&title)?.reader.index())),
            _ => None,
        })
    }

    /// The value of an extended attribute of a title that is being recorded.
    fn growing_attribute(&self, file: &GrowingFile, name: &str) -> FsResult<Option<String>> {
        let look = self.looked(file)?;
        let seconds = look.duration().as_secs_f64();
        Ok(match name.strip_prefix(ATTRIBUTES) {
            Some("title") => Some(look.name().to_owned()),
            Some("id") => Some(file.id().0.to_string()),
            Some("duration") => Some(format!("{seconds:.3}")),
            Some("mean_rate") if seconds > 0.0 => {
                Some(format!("{:.0}", float(look.body().len()) * 8.0 / seconds))
            }
            Some("codecs") => Some(codecs(look.index())),
            _ => None,
        })
    }

    /// The names of a file's extended attributes.
    pub(crate) fn attributes(&self, path: &str) -> FsResult<Vec<String>> {
        let mut names = Vec::new();
        match self.place(path)? {
            FilePlace::Title(title) => {
                names.extend(["title", "id"]);
                if title.kind == TitleKind::Media {
                    names.extend(["duration", "mean_rate", "codecs"]);
                }
                names.extend(self.reservations.rate(title.id).map(|_| RATE));
            }
            FilePlace::Growing(file) => {
                names.extend(["title", "id", "duration", "codecs"]);
                let has_rate = !self.looked(&file)?.duration().is_zero();
                names.extend(has_rate.then_some("mean_rate"));
            }
            _ => {}
        }
        Ok(names.iter().map(|name| format!("{ATTRIBUTES}{name}")).collect())
    }

    /// Sets an extended attribute of the file with an inode number: the rate that is reserved.
    pub(crate) fn set_attribute(
        &self,
        number: u64,
        name: &str,
        value: &[u8],
        present: IfReserved,
    ) -> FsResult<()> {
        let title = self.title_with_rate(number, name)?;
        let by = self.owner.reservations().ok_or(Errno::EOPNOTSUPP)?;
        let text = std::str::from_utf8(value).map_err(|_| Errno::EINVAL)?.trim();
        let rate = if text.is_empty() { Ok(NO_RATE) } else { text.parse() };
        let rate: ReservedRate = rate.map_err(|_| Errno::EINVAL)?;
        if rate == NO_RATE {
            self.reservations.give_back(title.id);
            return Ok(());
        }
        let file = self.title_file(&title)?;
        let set = self.reservations.set(by, &title, &file.body, rate, present);
        set.map_err(|why| match why {
            NotChanged::Exists => Errno::EEXIST,
            NotChanged::None => Errno::ENODATA,
            NotChanged::Reserve(why) => {
                let (errno, why) = match why {
                    ReserveError::Refused(why) => (Errno::EBUSY, why),
                    ReserveError::NotPossible(why) => (Errno::EOPNOTSUPP, why),
                };
                (self.options.tell)(&format!("{}: no rate is reserved: {why}", title.name));
                errno
            }
        })
    }

    /// Removes an extended attribute of the file with an inode number: the reserved rate.
    pub(crate) fn remove_attribute(&self, number: u64, name: &str) -> FsResult<()> {
        let title = self.title_with_rate(number, name)?;
        match self.reservations.give_back(title.id) {
            true => Ok(()),
            false => Err(Errno::ENODATA),
        }
    }

    /// The title with an inode number, if `name` is the attribute of its reserved rate.
    fn title_with_rate(&self, number: u64, name: &str) -> FsResult<TitleRecord> {
        match self.place(&self.path(number)?)? {
            FilePlace::Title(title) if name.strip_prefix(ATTRIBUTES) == Some(RATE) => Ok(title),
            _ => Err(Errno::EOPNOTSUPP),
        }
    }
}

/// The codec strings of the tracks of a title.
fn codecs(index: &TitleIndex) -> String {
    let codecs = index.tracks.iter().map(|track| track.description.codec.as_str());
    codecs.collect::<Vec<_>>().join(",")
}

/// The prefix of the names of extended attributes.
const ATTRIBUTES: &str = "user.tenuto.";

/// The rate with which a reservation is given back.
const NO_RATE: ReservedRate = ReservedRate::Constant(BitRate(0));

/// The extended attribute that reserves a rate, behind the prefix.
const RATE: &str = "rate";
