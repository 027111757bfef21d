//! Lines on their way to a file that may be full: each line of the file is whole, and those that
//! are lost are counted in it. Opens no file to write to, and waits for nothing but the file.
//!
//! ```text
//!   lines 1 to 5 for a full file:  11111 22222 33|333 44444 55555
//!   kept, and written next:        333             or the file would have a torn line
//!   lost, and counted then:        44444 55555     or memory would grow while it is full
//! ```

use super::LogFile;
use crossbeam_channel::Sender;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;
use units::show::iso_date;

/// Appends lines to a file.
pub(super) struct LineWriter {
    out: Box<dyn Write + Send>,
    /// What is to be written: at first perhaps the rest of a line.
    waiting: Vec<u8>,
    /// Whether the file has the beginning of the first line that waits.
    is_torn: bool,
    /// The lines that wait and tell of lost ones: where they begin, and of how many they tell.
    told: Vec<(usize, u64)>,
    /// Lines that are lost, and of which the log has not told.
    lost: Arc<AtomicU64>,
    is_failing: bool,
    notes: Sender<String>,
}

impl LineWriter {
    /// A writer to `file`. Lines that are lost elsewhere are added to `lost`. `notes` gets a line
    /// for people each time that writing begins to fail.
    pub(super) fn new(file: LogFile, lost: Arc<AtomicU64>, notes: Sender<String>) -> Self {
        let out = Box::new(io::sink());
        let (waiting, told) = (Vec::new(), Vec::new());
        let mut writer =
            Self { out, waiting, is_torn: false, told, lost, is_failing: false, notes };
        writer.begin(file);
        writer
    }

    /// Adds a line, after one that tells of lost lines where there are some.
    pub(super) fn push(&mut self, line: &Value) {
        self.push_lost();
        self.append(line);
        if self.waiting.len() >= AT_ONCE {
            self.write();
        }
    }

    /// Adds a line that tells of lost lines, if there are some.
    pub(super) fn push_lost(&mut self) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            self.told.push((self.waiting.len(), lost));
            let time = iso_date(SystemTime::now());
            self.append(&json!({ "event": "log-lines-dropped", "lines": lost, "time": time }));
        }
    }

    fn append(&mut self, line: &Value) {
        self.waiting.extend_from_slice(line.to_string().as_bytes());
        self.waiting.push(b'\n');
    }

    /// Writes what waits. What the file does not take is lost, but for the rest of a line that it
    /// has in part.
    pub(super) fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut written = 0;
        let failure = loop {
            match self.waiting.get(written..) {
                None | Some([]) => break None,
                Some(rest) => match self.out.write(rest) {
                    Ok(0) => break Some(io::ErrorKind::WriteZero.into()),
                    Ok(count) => written += count,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => break Some(error),
                },
            }
        };
        // A full disk or a closed terminal must not stop the server.
        let failure: Option<io::Error> = failure.or_else(|| self.out.flush().err());
        self.keep_rest(written);
        if let (Some(error), false) = (&failure, self.is_failing) {
            // Where nobody takes the notes, the first ones are enough.
            let _ = self.notes.try_send(format!(
                "--access-log: no line can be written ({error}), and lines are lost until one can \
                 be; make room, or set another file in the configuration and reload it"
            ));
        }
        self.is_failing = failure.is_some();
    }

    /// Forgets what is written, and counts as lost what is not, but for the rest of a line.
    fn keep_rest(&mut self, written: usize) {
        let is_end = |byte: &u8| *byte == b'\n';
        self.is_torn = match written.checked_sub(1) {
            None => self.is_torn,
            Some(last) => !is_end(&self.waiting[last]),
        };
        let rest = match self.is_torn {
            false => 0,
            true => self.waiting[written..].iter().position(is_end).map_or(0, |end| end + 1),
        };
        let unwritten = &self.waiting[written + rest..];
        let lines = unwritten.iter().filter(|byte| is_end(byte)).count();
        let untold = self.told.iter().filter(|(start, _)| *start >= written + rest);
        let (untold, told_by_them) =
            untold.fold((0, 0), |(count, sum), (_, lost)| (count + 1, sum + lost));
        self.lost.fetch_add((lines - untold) as u64 + told_by_them, Ordering::Relaxed);
        let (is_torn, waiting) = (self.is_torn, &self.waiting);
        self.told.retain_mut(|(start, _)| {
            let is_the_torn =
                is_torn && *start <= written && !waiting[*start..written].iter().any(is_end);
            *start = 0;
            is_the_torn
        });
        self.waiting.truncate(written + rest);
        self.waiting.drain(..written);
    }

    /// Writes the lines that follow to another file.
    pub(super) fn go_on_in(&mut self, file: LogFile) {
        self.write();
        if self.is_torn {
            let lost = self.told.first().map_or(1, |(_, lost)| *lost);
            self.lost.fetch_add(lost, Ordering::Relaxed);
        }
        self.begin(file);
    }

    fn begin(&mut self, file: LogFile) {
        // A server before this one, or this one through another handle, has left a torn line there
        // that nobody can complete. What ends it counts as no line.
        self.is_torn = file.path.as_deref().is_some_and(ends_within_a_line);
        self.out = file.out;
        self.waiting.clear();
        self.told.clear();
        self.is_failing = false;
        if self.is_torn {
            self.waiting.push(b'\n');
            self.told.push((0, 0));
        }
    }
}

/// Whether a file ends within a line, as far as it can be read.
fn ends_within_a_line(path: &Path) -> bool {
    let last = || -> io::Result<u8> {
        // To open a pipe would wait for its other end.
        if !fs::metadata(path)?.is_file() {
            return Ok(b'\n');
        }
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    last().is_ok_and(|last| last != b'\n')
}

/// Bytes that are written at a time.
const AT_ONCE: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::{Receiver, bounded};
    use std::sync::Mutex;

    /// A file on a file system with room for so many bytes.
    #[derive(Clone, Default)]
    struct SmallFile(Arc<Mutex<(Vec<u8>, usize)>>);

    impl SmallFile {
        fn make_room(&self, bytes: usize) {
            self.0.lock().unwrap().1 += bytes;
        }

        fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().0.clone()).unwrap()
        }

        fn log_file(&self) -> LogFile {
            LogFile { out: Box::new(self.clone()), path: None }
        }
    }

    impl Write for SmallFile {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (file, room) = &mut *self.0.lock().unwrap();
            let count = bytes.len().min(*room);
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= count;
            file.extend(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn writer(file: &SmallFile) -> (LineWriter, Arc<AtomicU64>, Receiver<String>) {
        let lost = Arc::new(AtomicU64::new(0));
        let (notes, noted) = bounded(8);
        (LineWriter::new(file.log_file(), Arc::clone(&lost), notes), lost, noted)
    }

    /// The numbers of the lines in a file, and minus the number of those that it tells are lost.
    fn told(text: &str) -> Vec<i64> {
        let number = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("{text}"));
            let lost = line["lines"].as_i64().map(|lost| -lost);
            assert_eq!(line["event"] == "log-lines-dropped", lost.is_some(), "{line}");
            lost.or(line["number"].as_i64()).unwrap()
        };
        text.lines().map(number).collect()
    }

    fn push(writer: &mut LineWriter, numbers: std::ops::Range<u64>) {
        numbers.for_each(|number| writer.push(&json!({ "number": number })));
        writer.write();
    }

    #[test]
    fn lines_that_do_not_fit_are_counted_by_the_next_one_and_none_is_torn() {
        // Lines of 14 bytes.
        for (room, first, lost) in [
            (0, vec![], 3),
            (1, vec![10], 2),
            (13, vec![10], 2),
            (14, vec![10], 2),
            (15, vec![10, 11], 1),
            (41, vec![10, 11, 12], 0),
            (42, vec![10, 11, 12], 0),
        ] {
            let file = SmallFile::default();
            let (mut writer, ..) = writer(&file);
            file.make_room(room);
            push(&mut writer, 10..13);
            push(&mut writer, 13..14);
            file.make_room(1000);
            push(&mut writer, 14..15);
            let expected = [first, vec![-(lost + 1), 14]].concat();
            assert_eq!(told(&file.text()), expected, "room for {room} bytes");
        }
    }

    #[test]
    fn every_line_is_there_or_counted_however_room_comes() {
        for seed in 0..1000 {
            let mut random = fastrand::Rng::with_seed(seed);
            let file = SmallFile::default();
            let (mut writer, queue, _) = writer(&file);
            let (mut number, mut dropped) = (0, 0);
            for _ in 0..40 {
                file.make_room(random.usize(0..200));
                let lines = random.u64(0..8);
                push(&mut writer, number..number + lines);
                number += lines;
                // Lines that did not fit the queue.
                let more = random.u64(0..2);
                queue.fetch_add(more, Ordering::Relaxed);
                dropped += more;
            }
            file.make_room(10_000);
            writer.push_lost();
            writer.write();
            let text = file.text();
            let (there, lost): (Vec<i64>, Vec<i64>) = told(&text).iter().partition(|it| **it >= 0);
            assert!(there.is_sorted_by(|a, b| a < b), "seed {seed}: {text}");
            let accounted = there.len() as u64 + lost.iter().sum::<i64>().unsigned_abs();
            assert_eq!(accounted, number + dropped, "seed {seed}: {text}");
        }
    }

    #[test]
    fn each_time_of_failing_is_noted_once() {
        let file = SmallFile::default();
        let (mut writer, _, noted) = writer(&file);
        let notes = || noted.try_iter().count();
        for (room, lines, expected) in [
            (14, 1, 0),
            (0, 1, 1),
            (0, 9, 0),
            (5, 1, 0),
            (500, 1, 0),
            (0, 40, 1),
            (0, 1, 0),
            (500, 1, 0),
        ] {
            file.make_room(room);
            push(&mut writer, 10..10 + lines);
            assert_eq!(notes(), expected, "{room} bytes, {lines} lines");
        }
    }

    #[test]
    fn a_torn_line_is_lost_with_its_file_and_another_file_begins_with_a_whole_one() {
        let (file, other) = (SmallFile::default(), SmallFile::default());
        let (mut writer, ..) = writer(&file);
        file.make_room(20);
        push(&mut writer, 10..13);
        other.make_room(1000);
        writer.go_on_in(other.log_file());
        push(&mut writer, 20..21);
        assert_eq!(told(&other.text()), [-2, 20]);
        assert_eq!(file.text().len(), 20);
    }

    #[test]
    fn a_torn_line_that_a_server_before_has_left_is_ended() {
        let path = std::env::temp_dir().join(format!("tenuto-torn-log-{}", std::process::id()));
        for (before, after) in [
            ("{\"num", "{\"num\n{\"number\":10}\n"),
            ("{}\n", "{}\n{\"number\":10}\n"),
            ("", "{\"number\":10}\n"),
        ] {
            fs::write(&path, before).unwrap();
            let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
            let file = LogFile { out: Box::new(file), path: Some(path.clone()) };
            let mut writer = LineWriter::new(file, Arc::default(), bounded(8).0);
            push(&mut writer, 10..11);
            assert_eq!(fs::read_to_string(&path).unwrap(), after, "after {before:?}");
        }
        fs::remove_file(&path).unwrap();
    }
}
