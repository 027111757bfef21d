//! Records that are written are read back, lost ones are counted, and a broken file is refused.

use super::*;
use std::path::PathBuf;
use units::Hinted;

/// A new directory that is removed when the value is dropped.
struct Dir(PathBuf);

impl Dir {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("meter-log-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir(&dir).unwrap();
        Self(dir)
    }

    fn file(&self) -> PathBuf {
        self.0.join(FILE)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn records(count: u32) -> Vec<Record> {
    let record = |i: u32| {
        let at = u64::from(i) * 1_000_003;
        Record {
            stream: i % 7,
            file: i % 3,
            frame: u64::from(i),
            block: i % 11,
            bytes: 1 << 20,
            offset: at << 12,
            intended: at,
            start: if i.is_multiple_of(97) { NONE } else { at + 5 },
            first: if i.is_multiple_of(2) { NONE } else { at + 6 },
            end: if i.is_multiple_of(97) || i.is_multiple_of(89) { NONE } else { at + 900 },
            deadline: at + if i.is_multiple_of(13) { 800 } else { 1000 },
            open: 3,
            close: 4,
            meter: u64::from(i % 5) * 30,
            errno: if i.is_multiple_of(1001) { 5 } else { 0 },
            kind: if i.is_multiple_of(4) { OperationKind::Write } else { OperationKind::Read },
            random: i.is_multiple_of(10),
        }
    };
    (0..count).map(record).collect()
}

#[test]
fn records_are_read_as_they_were_written() {
    let dir = Dir::new("same");
    let put = records(40_000);
    let (mut sink, writer) = background_writer(&dir.file(), 2, WhenFull::Wait).unwrap();
    put.iter().for_each(|record| sink.keep(record));
    let written = writer.finish(sink, &[("target", "here".to_owned())]).unwrap();
    assert_eq!(written, Written { records: 40_000, lost: 0, first_lost: None });
    let log = read(&dir.0).unwrap();
    assert_eq!((log.records(), log.about("target").as_deref()), (40_000, Some("here")));
    assert_eq!(log.about("lost").as_deref(), Some("0"));
    let got: Vec<Record> = log.flat_map(Result::unwrap).collect();
    assert!(got == put, "the same records in the same order");
}

#[test]
fn records_without_room_are_counted_and_reported() {
    let dir = Dir::new("lost");
    let all = records(2_000_000);
    let (mut sink, writer) = background_writer(&dir.file(), 2, WhenFull::Count).unwrap();
    all.iter().for_each(|record| sink.keep(record));
    let written = writer.finish(sink, &[]).unwrap();
    assert_eq!(written.records + written.lost, 2_000_000, "{written:?}");
    assert_eq!(written.first_lost.is_some(), written.lost > 0);
    let log = read(&dir.file()).unwrap();
    assert_eq!(log.about("lost").unwrap(), written.lost.to_string());
    assert_eq!(recount(log).unwrap().records, written.records);
}

#[test]
fn late_operations_are_counted_from_the_records_alone() {
    let mut found = Recount::default();
    let record = Record { intended: 0, start: 1, end: 10, deadline: 10, ..Record::default() };
    let late = Record { end: 1_000_000_011, deadline: 1_000_000_010, ..record };
    for record in [
        record,
        late,
        Record { meter: 1, ..late },
        Record { errno: 5, ..record },
        Record { end: NONE, ..record },
        Record { deadline: NONE, ..late },
    ] {
        found.count(&record);
    }
    assert_eq!((found.records, found.frames, found.late), (6, 5, 4));
    assert_eq!((found.late_by_meter, found.failed, found.never), (1, 1, 1));
    assert_eq!(found.late_by_second, [(0, 2), (1, 2)].into());
}

#[test]
fn a_file_that_is_no_log_is_refused_with_the_reason() {
    let dir = Dir::new("broken");
    std::fs::write(dir.file(), "stream,frame\n").unwrap();
    let said = read(&dir.file()).err().unwrap().one_line();
    assert!(said.contains("no log of operations") && said.contains("killed"), "{said}");
    let said = LogWriter::create(&dir.file()).err().unwrap().one_line();
    assert!(said.contains("exists"), "{said}");
    let said = read(&dir.0.join("nowhere")).err().unwrap().one_line();
    assert!(said.contains("name a run's directory"), "{said}");
}

/// Reading damaged bytes gives an error and never panics.
#[test]
fn a_damaged_log_is_read_or_refused() {
    let dir = Dir::new("damaged");
    let mut writer = LogWriter::create(&dir.file()).unwrap();
    writer.put(&records(500)).unwrap();
    writer.finish(&[]).unwrap();
    let sound = std::fs::read(dir.file()).unwrap();
    let mut chance = fastrand::Rng::with_seed(94);
    for turn in 0..600 {
        let mut bytes = sound.clone();
        let from = if turn % 2 == 0 { 0 } else { bytes.len().saturating_sub(2000) };
        for _ in 0..=chance.usize(..4) {
            let at = chance.usize(from..bytes.len());
            bytes[at] = chance.u8(..);
        }
        std::fs::write(dir.file(), &bytes).unwrap();
        if let Ok(log) = read(&dir.file()) {
            log.filter_map(Result::err).for_each(drop);
        }
    }
}
